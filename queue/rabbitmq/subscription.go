package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// subscription is the supervised consumer of one queue. It implements [queue.Subscription].
type subscription struct {
	b          *Broker
	name, full string
	lease      time.Duration
	slots      int
	idle       time.Duration // how long what was not asked for may be kept from others

	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	// stopped is closed when no deliveries come any more and what nobody asked for was given back.
	stopped    chan struct{}
	background sync.WaitGroup // copies on their way
	retiring   sync.WaitGroup // channels that were replaced and have leases
	calm       int            // see verify; owned by run
	ready      chan struct{}  // holds a token while there may be something to take
	wanted     chan struct{}  // holds a token when a Receive finds the consumer parked

	mu      sync.Mutex
	cur     *consumer // nil while there is none
	why     error     // why there is none
	changed chan struct{}
	closed  bool
	waiting int       // calls of Receive under way
	called  time.Time // when the last one ended
}

// mostIdle is how long messages that were prefetched and not asked for stay with a subscription that is not receiving.
const mostIdle = time.Second

// mostPrefetch is the largest prefetch that AMQP can say.
const mostPrefetch = 65535

func newSubscription(b *Broker, name string, cfg queue.SubscribeConfig) *subscription {
	s := &subscription{
		b: b, name: name, full: b.topology.queue(name),
		lease: cfg.Lease, slots: min(max(cfg.Slots, 1), mostPrefetch), idle: min(cfg.Lease, mostIdle),
		stopped: make(chan struct{}), ready: make(chan struct{}, 1), wanted: make(chan struct{}, 1),
		calm: calmFirst, why: errDown, changed: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// run keeps a consumer, beginning with c, until Close; then it waits until the leases that are out have ended.
func (s *subscription) run(c *consumer) {
	defer s.background.Wait()
	defer s.retiring.Wait()
	stopped := sync.OnceFunc(func() { close(s.stopped) })
	defer stopped()
	told := "" // the last interruption in the log
	for failures := 0; ; {
		var err error
		if c != nil {
			from := time.Now()
			err = s.serve(c, stopped)
			if errors.Is(err, errStale) || time.Since(from) >= steady {
				failures, told = 0, ""
			}
		}
		if s.ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errStale) {
			told = s.tell(err, told)
			pause.For(s.ctx, reconnectPause(failures))
			failures++
		}
		if c, err = s.open(s.ctx, true); err != nil {
			s.set(nil, unavailable("subscribe", err))
			told = s.tell(err, told)
		}
	}
}

// tell logs an interruption, unless it is the same as the last one or the connection's: that is told once, by its link.
func (s *subscription) tell(err error, last string) string {
	if err == nil || s.ctx.Err() != nil || errors.Is(err, errNoConnection) || err.Error() == last {
		return last
	}
	s.b.cfg.Logger.Warn("subscription interrupted", "queue", s.name, "error", err.Error())
	return err.Error()
}

// open waits for a session, for at most waitTimeout, and opens a consumer on it.
func (s *subscription) open(ctx context.Context, create bool) (*consumer, error) {
	sess, err := s.b.consume.get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.openConsumer(sess, create)
	if err != nil && !errors.Is(err, queue.ErrQueueNotFound) && !permanent(err) {
		err = unavailable("subscribe", err)
	}
	return c, err
}

// serve runs one consumer to its end. Without an error it was Close that ended it.
func (s *subscription) serve(c *consumer, stopped func()) error {
	go func() {
		defer close(c.settled)
		c.settle()
	}()
	s.set(c, nil)
	err := c.pump(s.ctx)
	switch {
	case errors.Is(err, errStale):
		s.retiring.Go(func() { s.retire(c) })
		return err
	case err == nil: // closed
		s.background.Wait()
		stopped()
		s.retire(c)
		return nil
	}
	s.set(nil, unavailable("subscription interrupted", err))
	s.end(c)
	return err
}

// retire lets the leases that are out live on, on their channel, and ends it with the last of them.
func (s *subscription) retire(c *consumer) {
	close(c.retired)
	select {
	case <-c.settled:
	case lost := <-c.closes:
		_ = lost // with the leases; nothing more is to be done for them
	}
	s.end(c)
}

// end closes the channel. Leases that are out are lost.
func (s *subscription) end(c *consumer) {
	c.lost()
	if !c.ch.IsClosed() {
		_ = c.s.call(c.ch.Close) // a channel that cannot be closed has lost its connection
	}
	c.stop() // not before: it would ask the broker at the same time
	<-c.settled
}

func (s *subscription) set(c *consumer, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cur, s.why = c, why
	s.changedLocked()
}

func (s *subscription) changedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *subscription) setConsuming(c *consumer, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.consuming = on && !c.gone
	if !on && s.waiting > 0 && !s.closed {
		s.want()
	}
}

// want asks the pump for deliveries.
func (s *subscription) want() {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// announce wakes one Receive.
func (s *subscription) announce() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// unwanted reports whether nobody has received for a while although there are slots that the broker may fill.
func (s *subscription) unwanted(c *consumer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := c.open - len(c.buf)
	return s.waiting == 0 && time.Since(s.called) >= s.idle && held < s.slots
}

// unasked takes what is buffered, unless somebody is waiting for it and not all is to go.
func (s *subscription) unasked(c *consumer, all bool) []*handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 && !all {
		s.announce()
		return nil
	}
	back := c.takeLocked(len(c.buf))
	for _, h := range back {
		h.state = stateBusy
	}
	return back
}

// Close implements [queue.Subscription].
func (s *subscription) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.changedLocked()
	}
	s.mu.Unlock()
	s.cancel()
	timer := time.NewTimer(2 * closeTimeout)
	defer timer.Stop()
	select {
	case <-s.stopped:
	case <-timer.C: // what was not given back returns when its connection ends
	}
	return nil
}

// Healthy implements [queue.Subscription].
func (s *subscription) Healthy() error {
	s.mu.Lock()
	cur, why, closed := s.cur, s.why, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("subscription to %q: %w", s.name, queue.ErrClosed)
	case cur == nil || cur.ch.IsClosed():
		return unavailable("subscription to "+strconv.Quote(s.name), why)
	}
	if why, _ := s.b.blocking(); why != "" {
		return unavailable("subscription to "+strconv.Quote(s.name), errors.New(why))
	}
	return nil
}
