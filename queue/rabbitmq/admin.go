package rabbitmq

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// admin runs do on a channel of its own, which lasts for this call only: a question about a queue that is missing closes its channel. It
// goes through the connection for consuming, which the broker does not block. It returns with ctx even if the broker does not answer.
func (b *Broker) admin(ctx context.Context, do func(*channel) error) error {
	if !b.enter() {
		return queue.ErrClosed
	}
	sess, err := b.consume.get(ctx)
	if err != nil {
		b.leave()
		return err
	}
	answer := make(chan error, 1)
	go func() { // ends at the latest when call drops the connection; Close waits for it
		defer b.leave()
		answer <- withChannel(sess, do)
	}()
	select {
	case err = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil && sess.lost() && !permanent(err) {
		return unavailable("ask the broker", err)
	}
	return err
}

// passive asks for a queue by its full name.
func (b *Broker) passive(ctx context.Context, full string) (amqp.Queue, error) {
	var q amqp.Queue
	err := b.admin(ctx, func(ch *channel) (err error) {
		q, err = ch.findQueue(full)
		return err
	})
	switch {
	case missing(err):
		err = queue.ErrQueueNotFound
	case code(err) == amqp.NotFound:
		err = unavailable("the queue's node is down", err)
	}
	return q, err
}

// CreateQueue implements [queue.Broker]. It makes the dead-letter queue with the queue.
func (b *Broker) CreateQueue(ctx context.Context, name string) error {
	if b.isClosed() {
		return queue.ErrClosed
	}
	if err := b.topology.check(name); err != nil {
		return err
	}
	if err := b.admin(ctx, func(ch *channel) error { return b.topology.declareQueue(ch, name) }); err != nil {
		return fmt.Errorf("create queue %q: %w", name, err)
	}
	b.learn(name)
	if !queue.IsDLQ(name) {
		b.learn(queue.DLQ(name))
	}
	return nil
}

// Depth implements [queue.Broker].
func (b *Broker) Depth(ctx context.Context, name string) (queue.Depth, error) {
	q, err := b.passive(ctx, b.topology.queue(name))
	if err != nil {
		return queue.Depth{}, fmt.Errorf("depth of queue %q: %w", name, err)
	}
	b.learn(name)
	return queue.Depth{Ready: queue.CountOf(int64(q.Messages))}, nil
}
