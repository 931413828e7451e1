package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// delaySteps is how fine the delays of our own prefix are: the coarser of two, so that there are fewer queues.
const delaySteps = 4

// rabbitNames are the queues of our prefix, as docs/rabbitmq.md lists them; each delay has an exchange of its name as well.
func rabbitNames(prefix string) (queues, exchanges []string) {
	for i := 0; ; i++ {
		ms := math.Round(1000 * math.Pow(2, float64(i)/delaySteps))
		last := ms >= float64(24*time.Hour/time.Millisecond)
		if last {
			ms = float64(24 * time.Hour / time.Millisecond)
		}
		queues = append(queues, fmt.Sprintf("%sdelay.%.0f", prefix, ms))
		if last {
			break
		}
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
		if !sleep(ctx, 500*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
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
