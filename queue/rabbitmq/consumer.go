package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// consumer is one channel of a subscription, from its opening to its loss.
type consumer struct {
	sub     *subscription
	s       *session
	ch      *amqp.Channel
	closes  <-chan *amqp.Error
	cancels <-chan string
	stop    context.CancelFunc // of the consumer that was started last

	wake    chan struct{} // for the settler
	dead    chan struct{} // closed when the channel is lost
	retired chan struct{} // closed when no more deliveries come
	settled chan struct{} // closed when the settler has ended

	// The rest is guarded by the subscription's mu.
	consuming   bool
	gone        bool
	buf         []*handle // arrived and not handed out
	first, last *handle   // all that is not settled, by tag
	open        int       // how many those are
	dues        dues
	endings     []ending  // decided, not written yet
	fresh       int       // how many of them came since the last write
	flushAt     time.Time // when they are written at the latest
	armed       time.Time
	arrivals    int // deliveries so far
	verified    int // those of the last verify

	writing bool

	// Owned by pump.
	suspect bool // at the last verify messages were waiting
	calm    int  // how many times in a row verify found that nothing had come
	checks  int
	parked  bool // a consumer of this channel was stopped
}

// openConsumer opens a channel with the queue's prefetch. With create it declares the queue, and all that belongs to it: whoever deleted it
// may have made it again with other arguments, or without the binding through which delayed messages come.
func (s *subscription) openConsumer(sess *session, create bool) (*consumer, error) {
	c := &consumer{
		sub: s, s: sess,
		wake: make(chan struct{}, 1), dead: make(chan struct{}),
		retired: make(chan struct{}), settled: make(chan struct{}),
		stop: func() {},
	}
	err := withChannel(sess, func(ch *channel) error {
		_, err := ch.findQueue(s.full)
		return err
	})
	gone := missing(err)
	switch {
	case create && (err == nil || gone):
		if gone {
			s.b.cfg.Logger.Warn("queue is gone: making it again", "queue", s.name)
		}
		err = withChannel(sess, func(ch *channel) error { return s.b.topology.declareQueue(ch, s.name) })
	case gone:
		err = fmt.Errorf("queue %q: %w", s.name, queue.ErrQueueNotFound)
	}
	if err != nil {
		return nil, err
	}
	err = sess.call(func() (err error) {
		c.ch, err = sess.conn.Channel()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	c.closes = c.ch.NotifyClose(make(chan *amqp.Error, 1))
	c.cancels = c.ch.NotifyCancel(make(chan string, 4))
	if err := sess.call(func() error { return c.ch.Qos(s.slots, 0, false) }); err != nil {
		if !c.ch.IsClosed() {
			sess.wire.kill()
		}
		return nil, err
	}
	return c, nil
}

// pump takes deliveries while somebody wants them, until the channel is gone or ctx is done. It returns why it ended.
func (c *consumer) pump(ctx context.Context) error {
	var deliveries <-chan amqp.Delivery
	tick := time.NewTicker(max(c.sub.idle/2, 10*time.Millisecond))
	defer tick.Stop()
	check := time.NewTicker(silence)
	defer check.Stop()
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return c.whyEnded()
			}
			c.arrived(ctx, d)
		case <-check.C:
			if deliveries == nil {
				continue
			}
			err := c.check()
			if errors.Is(err, errStale) {
				c.park(ctx, deliveries, true)
			}
			if err != nil {
				return err
			}
		case <-c.sub.wanted:
			if deliveries != nil {
				continue
			}
			var err error
			if deliveries, err = c.consume(ctx); err != nil {
				return err
			}
		case <-tick.C:
			if deliveries != nil && c.sub.unwanted(c) {
				c.park(ctx, deliveries, false)
				deliveries = nil
			}
			if deliveries == nil && c.parked && !c.busy() {
				return errStale
			}
		case err := <-c.closes:
			return closedBecause(err)
		case <-c.cancels:
			return errCancelled
		case <-ctx.Done():
			c.park(ctx, deliveries, true)
			return nil
		}
	}
}

var errCancelled = errors.New("the broker cancelled the consumer: the queue was deleted, or its node is going down")

func closedBecause(err *amqp.Error) error {
	if err == nil {
		return errors.New("channel closed")
	}
	return fmt.Errorf("channel closed: %w", err)
}

// whyEnded asks for the reason after the deliveries have ended.
func (c *consumer) whyEnded() error {
	select {
	case err := <-c.closes:
		return closedBecause(err)
	case <-c.cancels:
		return errCancelled
	case <-time.After(rpcTimeout):
		return errors.New("the deliveries ended without a reason")
	}
}

// consume starts the deliveries. c.stop ends them: the channel of deliveries is closed once the broker has agreed.
func (c *consumer) consume(ctx context.Context) (deliveries <-chan amqp.Delivery, err error) {
	// The library cancels the consumer when the context ends. Its plain Cancel leaves a goroutine behind for each consumer.
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	err = c.s.call(func() error {
		deliveries, err = c.ch.ConsumeWithContext(ctx, c.sub.full, "", false, false, false, false, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	c.sub.setConsuming(c, true)
	return deliveries, nil
}

// park takes what is still on its way after the consumer was stopped, and gives back what nobody has asked for, or all that was not handed out.
// A quorum queue may deliver something after it has agreed to stop, which the library drops: only the end of the channel returns it, and counts
// it. So the channel is replaced as soon as it holds nothing else.
func (c *consumer) park(ctx context.Context, deliveries <-chan amqp.Delivery, all bool) {
	if deliveries != nil {
		c.parked = true
		c.stop()
		_ = c.s.call(func() error { // dropping the connection closes deliveries too
			for d := range deliveries {
				c.arrived(ctx, d)
			}
			return nil
		})
	}
	c.sub.setConsuming(c, false)
	if back := c.sub.unasked(c, all); len(back) > 0 {
		c.sub.background.Go(func() { c.giveBack(ctx, back) })
	}
}

// arrived books a delivery.
func (c *consumer) arrived(ctx context.Context, d amqp.Delivery) {
	h := &handle{c: c, d: d, n: countsOf(&d), due: time.Now(), place: -1}
	step := c.sub.b.topology.early(h, h.due)
	s := c.sub
	s.mu.Lock()
	if c.gone {
		s.mu.Unlock()
		return
	}
	c.arrivals++
	c.linkLocked(h)
	if step > 0 {
		h.state = stateBusy
	} else {
		c.buf = append(c.buf, h)
	}
	s.mu.Unlock()
	if step > 0 {
		s.background.Go(func() { c.hop(ctx, h, step) })
		return
	}
	s.announce()
}

// early returns the next step of a message whose delay has several, or 0 if it is due.
func (t *topology) early(h *handle, now time.Time) time.Duration {
	due := h.dueAt()
	if due.IsZero() {
		return 0
	}
	return stepAfter(t.lastStep(h.d.Headers), due.Sub(now))
}

// dueAt is when the message is due; zero if it does not say.
func (h *handle) dueAt() time.Time {
	if h.d.Headers == nil {
		return time.Time{}
	}
	due := headerInt(h.d.Headers, headerDue)
	if due <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(due)
}

// hop sends a message on its next step. Nobody sees it, and nothing is counted.
func (c *consumer) hop(ctx context.Context, h *handle, step time.Duration) {
	b := c.sub.b
	o := b.delayed(c.sub.full, step, h.dueAt(), copyOf(&h.d, h.unseen()))
	err := b.republish(context.WithoutCancel(ctx), time.Now().Add(rpcTimeout), o)
	if err != nil && ctx.Err() != nil {
		// Stopping, so the delay is not declared any more: somebody else sends it on, and nothing is counted.
		o.exchange, o.step = "", 0
		err = b.republish(context.WithoutCancel(ctx), time.Now().Add(closeTimeout), o)
	}
	if err != nil {
		pause.For(ctx, waitTimeout) // the broker hands it over again at once
		c.end(h, verdictReturn)
		return
	}
	c.end(h, verdictAck)
}

// unseen is what was spent before this delivery.
func (h *handle) unseen() counts {
	return counts{attempts: h.n.attempts - 1, deliveries: h.n.deliveries - 1}
}

// giveBack replaces messages that nobody has seen by copies, so that others get them with nothing charged. Where that fails, the broker
// takes them back, and counts it.
func (c *consumer) giveBack(ctx context.Context, back []*handle) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout) // also when Close has asked for it
	defer cancel()
	out, copied := make([]outgoing, 0, len(back)), make([]*handle, 0, len(back))
	for _, h := range back {
		o := c.sub.b.outgoing(c.sub.full, copyOf(&h.d, h.unseen()))
		if c.sub.b.carries(&o.msg) != nil {
			c.end(h, verdictReturn)
			continue
		}
		out, copied = append(out, o), append(copied, h)
	}
	c.sub.b.pub.publish(ctx, out)
	for i, h := range copied {
		v := verdictAck
		if out[i].err != nil {
			v = verdictReturn
		}
		c.end(h, v)
	}
}

// end settles what is busy.
func (c *consumer) end(h *handle, v verdict) {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	if h.state == stateBusy {
		c.endLocked(h, v)
	}
}

// lost ends all that came through the channel. Leases on it cannot be settled any more: the broker has their messages back.
func (c *consumer) lost() {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.gone {
		return
	}
	c.gone, c.consuming = true, false
	for h := c.first; h != nil; {
		next := h.next
		h.state, h.place, h.prev, h.next = stateOver, -1, nil, nil
		h = next
	}
	c.first, c.last, c.buf, c.dues, c.endings, c.open = nil, nil, nil, nil, nil, 0
	close(c.dead)
}

// take removes up to n buffered deliveries.
func (c *consumer) takeLocked(n int) []*handle {
	n = min(n, len(c.buf))
	took := slices.Clone(c.buf[:n])
	clear(c.buf[:n])
	if c.buf = c.buf[n:]; len(c.buf) == 0 {
		c.buf = nil
	}
	return took
}
