package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// Publish implements [queue.Broker]. Each message is persistent, mandatory and confirmed by the broker.
func (b *Broker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	if len(pubs) == 0 {
		return results
	}
	if !b.enter() {
		return failed(results, queue.ErrClosed)
	}
	defer b.leave()
	if err := b.publishable(ctx, name, pubs); err != nil {
		return failed(results, err)
	}
	out, at := make([]outgoing, 0, len(pubs)), make([]int, 0, len(pubs))
	now, full, limit := time.Now(), b.topology.queue(name), b.maxBody(name)
	for i := range pubs {
		msg, err := b.encode(&pubs[i], limit, now)
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i].ID = msg.MessageId
		out, at = append(out, b.delay(full, pubs[i].Delay, msg)), append(at, i)
	}
	b.send(ctx, out)
	for i := range out {
		if err := out[i].err; err != nil {
			results[at[i]] = queue.PublishResult{Err: err}
			if errors.Is(err, queue.ErrQueueNotFound) {
				b.forget(name)
			}
		}
	}
	return results
}

func failed(results []queue.PublishResult, err error) []queue.PublishResult {
	for i := range results {
		results[i].Err = err
	}
	return results
}

func (b *Broker) maxBody(name string) int {
	if queue.IsDLQ(name) {
		return 0
	}
	return b.cfg.MaxBody
}

// publishable says what keeps all of pubs from being published. The broker itself notices at once that a queue is missing, except for
// delayed messages: those are asked for, once.
func (b *Broker) publishable(ctx context.Context, name string, pubs []queue.Publication) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	full := b.topology.queue(name)
	if !validName(full) {
		return fmt.Errorf("publish to %.40q: %w: the name is not one that a queue can have", name, queue.ErrQueueNotFound)
	}
	delayed := false
	for i := range pubs {
		delayed = delayed || pubs[i].Delay > 0
	}
	if !delayed || b.knows(name) {
		return nil
	}
	if _, err := b.passive(ctx, full); err != nil {
		return fmt.Errorf("publish to %q: %w", name, err)
	}
	b.learn(name)
	return nil
}

// frameRoom is what is left in a header frame for the properties and for the driver's own headers in later copies. Dead letters have no
// copies.
const (
	frameRoom     = 1024
	deadFrameRoom = 96
)

func (b *Broker) encode(p *queue.Publication, limit int, now time.Time) (amqp.Publishing, error) {
	if limit > 0 && len(p.Body) > limit {
		return amqp.Publishing{}, &queue.TooLargeError{Size: len(p.Body), Limit: limit}
	}
	headers := encodeHeaders(p.Headers)
	size, err := tableSize(headers)
	if err != nil {
		return amqp.Publishing{}, err
	}
	// All headers travel in one frame.
	room := int(b.pub.frame.Load()) - frameRoom
	if limit == 0 {
		room += frameRoom - deadFrameRoom
	}
	if size > room {
		return amqp.Publishing{}, fmt.Errorf("headers: %w", &queue.TooLargeError{Size: size, Limit: room})
	}
	return amqp.Publishing{
		Headers: headers, DeliveryMode: amqp.Persistent, MessageId: b.newID(), Timestamp: now, Body: p.Body,
	}, nil
}

// carries refuses a copy whose properties and headers do not fit into one frame, as the original's did without the driver's: the broker
// would close the connection for it.
func (b *Broker) carries(msg *amqp.Publishing) error {
	size, err := tableSize(msg.Headers)
	if err != nil {
		return err
	}
	const fixed = 8 + 14 + 1 + 1 + 8 // frame, class and flags, delivery mode, priority, timestamp
	size += fixed
	for _, text := range []string{msg.ContentType, msg.ContentEncoding, msg.CorrelationId, msg.ReplyTo, msg.MessageId, msg.Type, msg.AppId} {
		size += 1 + len(text)
	}
	if limit := int(b.pub.frame.Load()); size > limit {
		return fmt.Errorf("copy: headers: %w", &queue.TooLargeError{Size: size, Limit: limit})
	}
	return nil
}
