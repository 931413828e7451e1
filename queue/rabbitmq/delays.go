package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// delays remembers which delay queues are known to exist. A queue is declared when a message first needs it.
type delays struct {
	mu    sync.Mutex
	steps map[time.Duration]*declaration
}

// declaration is one attempt to declare a delay, shared by all who need it.
type declaration struct {
	done chan struct{} // closed when it is over
	err  error         // to be read after done
}

func (d *declaration) ready() bool {
	select {
	case <-d.done:
		return d.err == nil
	default:
		return false
	}
}

// start returns the declaration of step, and whether the caller has to make it.
func (d *delays) start(step time.Duration) (decl *declaration, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if decl := d.steps[step]; decl != nil {
		return decl, false
	}
	if d.steps == nil {
		d.steps = make(map[time.Duration]*declaration)
	}
	decl = &declaration{done: make(chan struct{})}
	d.steps[step] = decl
	return decl, true
}

// finish ends a declaration. One that failed is made again by the next who needs it.
func (d *delays) finish(step time.Duration, decl *declaration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if decl.err = err; err != nil && d.steps[step] == decl {
		delete(d.steps, step)
	}
	close(decl.done)
}

// forget has all delays declared again before they are used: after a reconnect, or when one was found missing.
func (d *delays) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.steps)
}

func (d *delays) has(step time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	decl := d.steps[step]
	return decl != nil && decl.ready()
}

// needDelay declares a delay unless that was done. It returns with ctx; the declaration goes on for others.
func (b *Broker) needDelay(ctx context.Context, step time.Duration) error {
	decl, mine := b.delays.start(step)
	if mine {
		if !b.enter() {
			b.delays.finish(step, decl, queue.ErrClosed)
			return queue.ErrClosed
		}
		go func() { // Close waits for it
			defer b.leave()
			b.delays.finish(step, decl, b.declareDelay(step)) //nolint:contextcheck // it belongs to the broker, not to one caller
		}()
	}
	select {
	case <-decl.done:
		return decl.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Broker) declareDelay(step time.Duration) error {
	err := b.admin(b.life, func(ch *channel) error { return b.topology.declareDelay(ch, step) })
	switch {
	case err == nil:
		return nil
	case b.life.Err() != nil:
		return queue.ErrClosed
	case permanent(err) || errors.Is(err, queue.ErrUnavailable):
		return fmt.Errorf("declare a delay of %v: %w", step, err)
	}
	return unavailable(fmt.Sprintf("declare a delay of %v", step), err)
}

// delayed is a message on its way into a delay.
func (b *Broker) delayed(full string, step time.Duration, due time.Time, msg amqp.Publishing) outgoing {
	if !due.IsZero() {
		if msg.Headers == nil {
			msg.Headers = amqp.Table{}
		}
		msg.Headers[headerDue] = due.UnixMilli()
	}
	o := b.outgoing(full, msg)
	o.exchange, o.step = b.topology.delay(step), step
	return o
}

// delay addresses a message: to its queue, or to the first of the delays that end there. What one delay cannot do alone says when it is due.
func (b *Broker) delay(full string, delay time.Duration, msg amqp.Publishing) outgoing {
	if delay <= 0 {
		return b.outgoing(full, msg)
	}
	whole := roundDelay(delay)
	step := nextStep(whole)
	var due time.Time
	if step < whole {
		// Clocks differ a little: one that is behind by less than clockSlack must not add a second to what the steps have waited.
		due = time.Now().Add(max(delay, whole-clockSlack) + time.Millisecond - 1)
	}
	return b.delayed(full, step, due, msg)
}

const clockSlack = 100 * time.Millisecond

// send publishes out. What is not delayed, or whose delay is there, goes first; the rest once its delays are declared.
func (b *Broker) send(ctx context.Context, out []outgoing) {
	var early, late []int
	for i := range out {
		if step := out[i].step; step > 0 && !b.delays.has(step) {
			late = append(late, i)
		} else {
			early = append(early, i)
		}
	}
	if len(late) == 0 {
		b.pub.publish(ctx, out)
		return
	}
	b.sendSome(ctx, out, early)
	ready := late[:0]
	for _, i := range late {
		if err := b.needDelay(ctx, out[i].step); err != nil {
			out[i].err = err
			continue
		}
		ready = append(ready, i)
	}
	b.sendSome(ctx, out, ready)
}

// sendSome publishes the messages of out that which names.
func (b *Broker) sendSome(ctx context.Context, out []outgoing, which []int) {
	if len(which) == 0 {
		return
	}
	some := make([]outgoing, len(which))
	for at, i := range which {
		some[at] = out[i]
	}
	b.pub.publish(ctx, some)
	for at, i := range which {
		out[i].err = some[at].err
	}
}
