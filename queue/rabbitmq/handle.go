package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// handle is one delivery. It belongs to the channel that brought it, and is lost with it: a tag means nothing on another channel.
// It implements [queue.Handle].
type handle struct {
	c       *consumer
	d       amqp.Delivery
	n       counts    // with this delivery
	due     time.Time // when the lease ends; before it is handed out, when it arrived
	ceiling time.Time

	// The rest is guarded by the subscription's mu.
	state      handleState
	place      int // in the heap of due times, -1 if it is not there
	prev, next *handle
}

type handleState uint8

const (
	stateBuffered handleState = iota // arrived, not handed out
	stateHeld                        // handed out
	stateBusy                        // being replaced by a copy
	stateOver                        // settled, expired or lost
)

// Extend implements [queue.Handle]. The broker knows no deadline, so nothing is sent.
func (h *handle) Extend(_ context.Context, d time.Duration) error {
	s := h.c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.state != stateHeld {
		return queue.ErrLeaseLost
	}
	h.c.dues.move(h, time.Now().Add(d))
	h.c.armLocked(h.due)
	return nil
}

// Settle implements [queue.Handle].
func (h *handle) Settle(ctx context.Context, s queue.Settlement) error {
	switch {
	case s.Action == queue.ActionAck:
		return h.end(verdictAck)
	case s.Action == queue.ActionRelease && !s.Uncharged:
		return h.end(verdictReturn)
	case s.Action == queue.ActionRetry || s.Action == queue.ActionRelease:
		spent := h.n
		if s.Uncharged {
			spent.attempts--
		}
		return h.replace(ctx, s.Delay, spent)
	}
	return fmt.Errorf("unknown settlement %v", s.Action)
}

// end settles what is held, without asking the broker for an answer.
func (h *handle) end(v verdict) error {
	s := h.c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.state != stateHeld || h.c.ch.IsClosed() {
		return queue.ErrLeaseLost
	}
	h.c.endLocked(h, v)
	return nil
}

// replace publishes a copy and, once that is confirmed, acks the original: a crash in between makes two of it, never none.
func (h *handle) replace(ctx context.Context, delay time.Duration, spent counts) error {
	s := h.c.sub
	s.mu.Lock()
	if h.state != stateHeld || h.c.ch.IsClosed() {
		s.mu.Unlock()
		return queue.ErrLeaseLost
	}
	h.state = stateBusy
	h.c.dues.remove(h)
	due := h.due
	s.mu.Unlock()

	err := s.b.republish(ctx, due, s.b.delay(s.full, delay, copyOf(&h.d, spent)))
	late := !time.Now().Before(due)

	s.mu.Lock()
	defer s.mu.Unlock()
	if h.state != stateBusy {
		return fmt.Errorf("%w: the channel was closed meanwhile", queue.ErrLeaseLost)
	}
	switch {
	case err == nil:
		h.c.endLocked(h, verdictAck)
		return nil
	case errors.Is(err, queue.ErrTooLarge):
		// There is no room to write down what was spent: the broker counts it. A delay cannot be had.
		h.c.endLocked(h, verdictReturn)
		return nil
	case late:
		h.c.endLocked(h, verdictReturn)
		return fmt.Errorf("%w: %w", queue.ErrLeaseLost, err)
	}
	h.state = stateHeld
	h.c.dues.add(h)
	h.c.armLocked(h.due)
	return err
}

// republish publishes one message, until ctx is done or until.
func (b *Broker) republish(ctx context.Context, until time.Time, o outgoing) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	out := [1]outgoing{o}
	if err := b.carries(&out[0].msg); err != nil {
		return err
	}
	b.send(ctx, out[:])
	if err := out[0].err; err != nil {
		if errors.Is(err, queue.ErrQueueNotFound) {
			// The subscription makes it again; until then the message is where it was.
			return unavailable("publish", err)
		}
		return err
	}
	return nil
}
