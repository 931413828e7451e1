package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// rabbitNames are the queues of our prefix, as docs/rabbitmq.md lists them; each delay has an exchange of its name as well.
func rabbitNames(prefix string) (queues, exchanges []string) {
	for seconds := 1; seconds <= 8192; seconds *= 2 {
		queues = append(queues, fmt.Sprintf("%sdelay.%d", prefix, 1000*seconds))
	}
	exchanges = append(queues[:len(queues):len(queues)], prefix+"deliver", prefix+"unroutable")
	return append(queues, prefix+queueName, prefix+queue.DLQ(queueName), prefix+"unroutable"), exchanges
}

// inRabbitMQ takes every message out of the broker, since nobody can look for one there. Messages move from a delay to the queue while it looks:
// it is done when it found nothing twice.
func (a *account) inRabbitMQ(ctx context.Context, p plan, missing map[string]bool) error {
	conn, err := amqp.Dial(p.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // what matters was confirmed
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	queues, _ := rabbitNames(p.Prefix)
	if queues, err = existing(conn, queues); err != nil {
		return err
	}
	for quiet := 0; quiet < 2; quiet++ {
		for _, name := range queues {
			n, err := a.drain(ch, name, missing)
			if err != nil {
				return fmt.Errorf("look into %s: %w", name, err)
			}
			if n > 0 {
				quiet = -1
			}
		}
		if !pause.For(ctx, 500*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// existing leaves out the delays that nothing has needed yet.
func existing(conn *amqp.Connection, queues []string) (found []string, err error) {
	for _, name := range queues {
		ch, err := conn.Channel()
		if err != nil {
			return nil, err
		}
		var answer *amqp.Error
		_, err = ch.QueueDeclarePassive(name, true, false, false, false, nil)
		switch {
		case errors.As(err, &answer) && answer.Code == amqp.NotFound:
			continue // which has closed the channel
		case err != nil:
			return nil, err
		}
		if err := ch.Close(); err != nil {
			return nil, err
		}
		found = append(found, name)
	}
	return found, nil
}

func (a *account) drain(ch *amqp.Channel, name string, missing map[string]bool) (n int, err error) {
	for ; ; n++ {
		d, ok, err := ch.Get(name, true)
		if err != nil || !ok {
			return n, err
		}
		headers := map[string]string{}
		for key, value := range d.Headers {
			if text, ok := value.(string); ok {
				headers[key] = text
			}
		}
		m := queue.Message{Body: d.Body, Headers: headers}
		env, err := m.Envelope()
		if err != nil {
			return n, err
		}
		a.waits(env.Key, missing)
	}
}

// dropRabbitMQ removes everything of our prefix.
func dropRabbitMQ(p plan) error {
	conn, err := amqp.Dial(p.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // what matters was confirmed
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	queues, exchanges := rabbitNames(p.Prefix)
	for _, name := range queues {
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			return fmt.Errorf("remove queue %s: %w", name, err)
		}
	}
	var errs []error
	for _, name := range exchanges {
		errs = append(errs, ch.ExchangeDelete(name, false, false))
	}
	return errors.Join(errs...)
}
