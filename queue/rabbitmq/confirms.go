package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// run publishes on one session after the other until ctx is done.
func (p *publisher) run(ctx context.Context) {
	for ctx.Err() == nil {
		s, _, changed := p.link.state()
		if s == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		p.serve(ctx, s)
		if ctx.Err() == nil {
			// A channel that was closed alone is not repaired: a new session starts anew.
			s.wire.kill()
			<-s.done
		}
	}
}

// unconfirmed is one message that was sent and not confirmed.
type unconfirmed struct {
	b  *batch
	i  int
	dc *amqp.DeferredConfirmation
}

// outbox is the channel of one session on which messages go out.
type outbox struct {
	p           *publisher
	s           *session
	ch          *amqp.Channel
	closes      <-chan *amqp.Error // for collect
	gone        <-chan *amqp.Error // for send
	returns     <-chan amqp.Return
	slots       chan struct{} // a place for each message that may be unconfirmed
	unconfirmed chan unconfirmed
	why         error // why the channel was closed; owned by collect
}

func (p *publisher) serve(ctx context.Context, s *session) {
	p.fresh()
	o, err := p.open(s)
	if err != nil {
		return // the session is dropped, and the next one tells what is wrong
	}
	var wg sync.WaitGroup
	wg.Go(o.collect)
	o.send(ctx)
	close(o.unconfirmed)
	if ctx.Err() != nil {
		s.close() // confirmations that have not come by now do not come
	} else {
		s.wire.kill()
	}
	wg.Wait()
}

func (p *publisher) open(s *session) (*outbox, error) {
	o := &outbox{p: p, s: s, slots: make(chan struct{}, p.window), unconfirmed: make(chan unconfirmed, p.window)}
	err := s.call(func() (err error) {
		o.ch, err = s.conn.Channel()
		return err
	})
	if err != nil {
		return nil, err
	}
	o.closes = o.ch.NotifyClose(make(chan *amqp.Error, 1))
	o.gone = o.ch.NotifyClose(make(chan *amqp.Error, 1))
	// Each message in flight can come back once; a listener that is not read would stop the connection's reader.
	o.returns = o.ch.NotifyReturn(make(chan amqp.Return, p.window+1))
	if err := s.call(func() error { return o.ch.Confirm(false) }); err != nil {
		return nil, err
	}
	p.frame.Store(int64(max(s.conn.Config.FrameSize, smallestFrame)))
	return o, nil
}

// send takes batches until the channel is gone or ctx is done.
func (o *outbox) send(ctx context.Context) {
	for {
		why, changed := o.s.blocking()
		todo := o.p.todo
		if why != "" {
			todo = nil // what is written now would only fill the socket
		}
		select {
		case b := <-todo:
			if !o.sendBatch(ctx, b) {
				return
			}
		case <-changed:
			if o.s.lost() {
				return
			}
		case err := <-o.gone:
			_ = err // collect tells why
			return
		case <-ctx.Done():
			return
		}
	}
}

// sendBatch reports whether the channel is still good.
func (o *outbox) sendBatch(ctx context.Context, b *batch) bool {
	o.s.wire.hold()
	defer o.s.wire.release()
	for i := range b.out {
		if !o.enter(ctx) {
			b.abandon(queue.ErrClosed)
			return false
		}
		if o.s.isBlocked.Load() && !o.unblocked(ctx) {
			b.abandon(unavailable("publish", errors.New("connection lost")))
			return false
		}
		if b.abandoned() {
			<-o.slots
			return true
		}
		m := &b.out[i]
		dc, err := o.ch.PublishWithDeferredConfirm(m.exchange, m.key, true, false, m.msg)
		if err != nil {
			b.abandon(unavailable("publish", err))
			return false
		}
		o.p.unconfirmed.Add(1)
		o.unconfirmed <- unconfirmed{b: b, i: i, dc: dc}
	}
	return true
}

// enter takes a place in the window; false if ctx ended first.
func (o *outbox) enter(ctx context.Context) bool {
	select {
	case o.slots <- struct{}{}:
		return true
	default:
	}
	o.s.wire.release() // what makes room is the answer to what is held back
	defer o.s.wire.hold()
	select {
	case o.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// unblocked waits until the broker takes messages again; false if the session ended first.
func (o *outbox) unblocked(ctx context.Context) bool {
	o.s.wire.release()
	defer o.s.wire.hold()
	for {
		why, changed := o.s.blocking()
		switch {
		case o.s.lost():
			return false
		case why == "":
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// collect takes the confirmations, in the order of sending. A message that could not be routed comes back before its confirmation.
func (o *outbox) collect() {
	returned := map[route]amqp.Return{}
	for f := range o.unconfirmed {
		<-f.dc.Done() // also when the channel is closed
		for more := true; more; {
			select {
			case r, ok := <-o.returns:
				if more = ok; ok {
					r.Body, r.Headers = nil, nil
					returned[route{r.Exchange, r.RoutingKey, r.MessageId}] = r
				} else {
					o.returns = nil
				}
			default:
				more = false
			}
		}
		f.b.finish(f.i, o.outcome(f, returned))
		o.p.unconfirmed.Add(-1)
		<-o.slots
	}
}

// route names a message among those in flight. An id alone does not: other programs may give one to many messages.
type route struct{ exchange, key, id string }

func (o *outbox) outcome(f unconfirmed, returned map[route]amqp.Return) error {
	m := &f.b.out[f.i]
	if f.dc.Acked() {
		if len(returned) == 0 {
			return nil
		}
		of := route{m.exchange, m.key, m.msg.MessageId}
		r, ok := returned[of]
		if !ok {
			return nil
		}
		delete(returned, of)
		if m.exchange != "" {
			o.p.fresh()
			return unavailable("publish", fmt.Errorf("nothing is bound to exchange %q: its queue was deleted, the next message declares it again", m.exchange))
		}
		return fmt.Errorf("publish to %q: %w: the broker returned the message: %s", r.RoutingKey, queue.ErrQueueNotFound, r.ReplyText)
	}
	if !o.ch.IsClosed() {
		return unavailable("publish", errors.New("the broker refused the message: a limit of the queue is reached, or it has no leader"))
	}
	if o.why == nil {
		o.why = errors.New("connection lost before the message was confirmed")
		select {
		case err := <-o.closes:
			if err != nil {
				o.why = err
			}
		default:
		}
	}
	if large := tooLarge(o.why, len(m.msg.Body)); large != nil {
		return large
	}
	return unavailable("publish", o.why)
}

var sizeText = regexp.MustCompile(`message size (\d+) is larger than (?:configured )?max size (\d+)`)

// tooLarge tells whether err is the broker's refusal of a message of that size. It closes the channel for it.
func tooLarge(err error, size int) error {
	if code(err) != amqp.PreconditionFailed {
		return nil
	}
	m := sizeText.FindStringSubmatch(err.Error())
	if m == nil || m[1] != strconv.Itoa(size) {
		return nil
	}
	limit, err := strconv.Atoi(m[2])
	if err != nil {
		return nil //nolint:nilerr // a number that does not fit is no limit of this message
	}
	return &queue.TooLargeError{Size: size, Limit: limit}
}
