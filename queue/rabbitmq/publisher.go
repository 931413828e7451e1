package rabbitmq

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// publisher owns the one channel on which messages are published. Publications wait in order; at most window of them are unconfirmed.
type publisher struct {
	link   *link
	window int
	fresh  func() // called before the first message of each session, and when a delay was found missing
	todo   chan *batch
	closed chan struct{} // closed by Close when what was accepted had its time

	unconfirmed atomic.Int64
	frame       atomic.Int64 // the largest frame of the connection
}

func newPublisher(l *link, window int, fresh func()) *publisher {
	p := &publisher{link: l, window: window, fresh: fresh, todo: make(chan *batch), closed: make(chan struct{})}
	p.frame.Store(smallestFrame)
	return p
}

// smallestFrame is what every broker takes, including RabbitMQ 4.1 with its smallest setting.
const smallestFrame = 8192

// outgoing is one message on its way.
type outgoing struct {
	exchange, key string
	step          time.Duration // the delay that exchange belongs to, or 0
	msg           amqp.Publishing
	err           error // set by batch.finish
	over          bool
}

// batch is the messages of one call, in order.
type batch struct {
	out  []outgoing
	done chan struct{} // closed when all are over

	mu   sync.Mutex
	left int
	gone bool // the caller does not wait any more: send no more of it
}

func newBatch(out []outgoing) *batch {
	return &batch{out: out, left: len(out), done: make(chan struct{})}
}

// finish ends one message of the batch, if it has not ended.
func (b *batch) finish(i int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finishLocked(i, err)
}

func (b *batch) finishLocked(i int, err error) {
	o := &b.out[i]
	if o.over {
		return
	}
	o.over, o.err = true, err
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// abandon ends all that have not ended, with err, and keeps the rest of the batch from being sent.
func (b *batch) abandon(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	for i := range b.out {
		b.finishLocked(i, err)
	}
}

func (b *batch) abandoned() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}

// chunk is how many messages of one call go before those of another get their turn.
const chunk = 64

// publish sends out and waits until each is confirmed or has failed. The errors are in out.
func (p *publisher) publish(ctx context.Context, out []outgoing) {
	batches := make([]*batch, 0, (len(out)+chunk-1)/chunk)
	for start := 0; start < len(out); start += chunk {
		batches = append(batches, newBatch(out[start:min(start+chunk, len(out))]))
	}
	w := wait{p: p}
	defer w.stop()
	for sent, ended := 0, 0; ended < len(batches); {
		var todo chan *batch
		var next *batch
		if sent < len(batches) {
			todo, next = p.todo, batches[sent]
		}
		taken, err := w.step(ctx, todo, next, batches[ended].done)
		switch {
		case err != nil:
			for _, b := range batches[ended:] {
				b.abandon(err)
			}
			return
		case taken:
			sent++
		default:
			ended++
		}
	}
}

// wait is the waiting of one call: while degraded it ends after waitTimeout.
type wait struct {
	p     *publisher
	timer *time.Timer // runs while degraded
}

func (w *wait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// step waits until next is taken or done is closed. The error says why there is no point in waiting longer.
func (w *wait) step(ctx context.Context, todo chan<- *batch, next *batch, done <-chan struct{}) (taken bool, err error) {
	for {
		why, changed := w.p.degraded()
		var limit <-chan time.Time
		switch {
		case why == nil:
			w.stop()
			w.timer = nil
		case w.timer == nil:
			w.timer = time.NewTimer(waitTimeout)
			fallthrough
		default:
			limit = w.timer.C
		}
		select {
		case todo <- next:
			return true, nil
		case <-done:
			return false, nil
		case <-changed:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-w.p.closed:
			return false, queue.ErrClosed
		case <-limit:
			return false, unavailable("publish", why)
		}
	}
}

// degraded returns why nothing can be published now, or nil, and a channel that is closed when that changes.
func (p *publisher) degraded() (error, <-chan struct{}) { //nolint:revive,staticcheck // the channel belongs to both
	s, err, changed := p.link.state()
	if s == nil {
		return err, changed
	}
	why, changed := s.blocking()
	if why == "" {
		return nil, changed
	}
	return errors.New(why), changed
}
