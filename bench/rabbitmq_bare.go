package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpWindow is the most messages published and not confirmed yet, as in the driver.
const amqpWindow = 256

// bareAMQP are the loops that one would write by hand. The first acks several messages at once, from the one goroutine that handles them: it
// is as fast as this library gets, and can run one job at a time. The second hands messages to as many goroutines as the worker has slots, and
// each acks its own.
func bareAMQP(c config, address string) []*side {
	publish := func(ctx context.Context, name string, n, callers int) error {
		return barePublish(ctx, address, amqpPrefix+name, c.size, n, callers)
	}
	return []*side{
		{name: "bare", publish: publish, work: func(ctx context.Context, name string, n int, done func()) error {
			return bareConsume(ctx, address, amqpPrefix+name, c.slots, n, ackInBatches, done)
		}},
		{name: "bare pool", publish: publish, work: func(ctx context.Context, name string, n int, done func()) error {
			return bareConsume(ctx, address, amqpPrefix+name, c.slots, n, ackSideBySide, done)
		}},
	}
}

func barePublish(ctx context.Context, address, key string, size, n, callers int) error {
	conn, err := amqp.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var returned atomic.Int64
	returns := ch.NotifyReturn(make(chan amqp.Return, amqpWindow))
	var wg sync.WaitGroup
	wg.Go(func() {
		for range returns {
			returned.Add(1)
		}
	})
	window := make(chan struct{}, amqpWindow)
	err = fanOut(ctx, n, callers, func(ctx context.Context, jobs int) error {
		for ; jobs > 0; jobs -= batch {
			if err := barePublishBatch(ctx, ch, window, key, size); err != nil {
				return err
			}
		}
		return nil
	})
	err = errors.Join(err, ch.Close())
	wg.Wait()
	if returned.Load() > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages came back", returned.Load()))
	}
	return err
}

// barePublishBatch returns once the whole batch is confirmed.
func barePublishBatch(ctx context.Context, ch *amqp.Channel, window chan struct{}, key string, size int) error {
	body := bytes.Repeat([]byte("x"), size)
	p := bareBatch{window: window}
	for range batch {
		if err := p.enter(ctx); err != nil {
			return err
		}
		d, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", key, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, MessageId: nextID(), Type: "bench", Timestamp: time.Now(), ContentType: "application/octet-stream", Body: body,
		})
		if err != nil {
			return err
		}
		p.waiting = append(p.waiting, d)
	}
	for len(p.waiting) > 0 {
		if err := p.confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bareBatch is what one caller has published and not seen confirmed.
type bareBatch struct {
	window  chan struct{}
	waiting []*amqp.DeferredConfirmation
}

// enter takes a place in the window. While there is none it waits for its own oldest message, so that callers who share the window never wait
// for each other in a circle.
func (p *bareBatch) enter(ctx context.Context) error {
	for len(p.waiting) > 0 {
		select {
		case p.window <- struct{}{}:
			return nil
		default:
			if err := p.confirm(ctx); err != nil {
				return err
			}
		}
	}
	select {
	case p.window <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *bareBatch) confirm(ctx context.Context) error {
	ok, err := p.waiting[0].WaitContext(ctx)
	if err == nil && !ok {
		err = errors.New("refused by the broker")
	}
	p.waiting = p.waiting[1:]
	<-p.window
	return err
}

func bareConsume(ctx context.Context, address, name string, prefetch, n int,
	loop func(ctx context.Context, ch *amqp.Channel, deliveries <-chan amqp.Delivery, prefetch, n int) error, done func(),
) error {
	conn, err := amqp.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.ConsumeWithContext(ctx, name, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	if err := loop(ctx, ch, deliveries, prefetch, n); err != nil {
		return err
	}
	done()
	return ch.Close()
}

// ackInBatches acks half of the prefetch at once, or what there is after a few milliseconds, so that the broker never waits for long.
func ackInBatches(ctx context.Context, ch *amqp.Channel, deliveries <-chan amqp.Delivery, prefetch, n int) error {
	flush := time.NewTicker(5 * time.Millisecond)
	defer flush.Stop()
	var last uint64
	unacked := 0
	ack := func() error {
		if unacked == 0 {
			return nil
		}
		unacked = 0
		return ch.Ack(last, true)
	}
	for n > 0 {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return errors.New("the channel was closed")
			}
			last = d.DeliveryTag
			unacked++
			n--
			if unacked < max(prefetch/2, 1) && n > 0 {
				continue
			}
		case <-flush.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := ack(); err != nil {
			return err
		}
	}
	return nil
}

func ackSideBySide(ctx context.Context, _ *amqp.Channel, deliveries <-chan amqp.Delivery, prefetch, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg sync.WaitGroup
	for range prefetch {
		wg.Go(func() {
			for {
				select {
				case d, ok := <-deliveries:
					if !ok {
						end(errors.New("the channel was closed"))
						return
					}
					if err := d.Ack(false); err != nil {
						end(err)
					}
					if left.Add(-1) == 0 {
						end(errDone)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errDone) {
		return cause
	}
	return nil
}
