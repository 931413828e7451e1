package rabbitmq

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// ask returns what do answers on a channel of its own, which lasts for this call only: a question about a queue that is missing closes its
// channel. It goes through the connection for consuming, which the broker does not block. It returns with ctx even if the broker does not
// answer; do may go on then, so it shares nothing with the caller but what it returns.
func ask[T any](ctx context.Context, b *Broker, do func(*channel) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if !b.enter() {
		return none, queue.ErrClosed
	}
	sess, err := b.consume.get(ctx)
	if err != nil {
		b.leave()
		return none, err
	}
	answers := make(chan answer, 1)
	go func() { // ends at the latest when call drops the connection; Close waits for it
		defer b.leave()
		var a answer
		a.err = withChannel(sess, func(ch *channel) (err error) {
			a.value, err = do(ch)
			return err
		})
		answers <- a
	}()
	select {
	case a := <-answers:
		if a.err != nil && sess.lost() && !permanent(a.err) {
			a.err = unavailable("ask the broker", a.err)
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// admin is ask without a value.
func (b *Broker) admin(ctx context.Context, do func(*channel) error) error {
	_, err := ask(ctx, b, func(ch *channel) (struct{}, error) { return struct{}{}, do(ch) })
	return err
}

// passive asks for a queue by its full name.
func (b *Broker) passive(ctx context.Context, full string) (amqp.Queue, error) {
	q, err := ask(ctx, b, func(ch *channel) (amqp.Queue, error) { return ch.findQueue(full) })
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
