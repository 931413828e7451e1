package sqs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// subscription implements [queue.Subscription]. Receive calls ask; polls, which may outlive the call that started them, bring. What they bring goes
// to whoever waits.
type subscription struct {
	b     *Broker
	q     *remote
	lease time.Duration
	slots slots

	mu        sync.Mutex
	closed    bool
	done      chan struct{} // closed by Close
	waiters   int           // Receive calls under way
	polls     int           // requests under way
	asked     int           // messages that they may bring
	target    int           // how many there may be: more while they come back full
	arrived   []*handle     // for the next Receive
	news      chan struct{} // closed and replaced when anything above changes
	failed    error         // of a poll, for the next Receive
	last      error         // of a poll; good while failures is not 0
	failures  int           // in a row
	idle      int           // polls in a row that came back at once with nothing
	notBefore time.Time     // of the next poll
	waitTimer *time.Timer

	pollCtx context.Context // of the polls; replaced after they were cancelled
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

const (
	// stopWait is how long an open poll is waited for when nobody needs it any more: to cut it can strand what it was about to bring.
	stopWait = time.Second
	// arrivedWait is how long what a poll brought waits for a Receive before it is given back.
	arrivedWait = 500 * time.Millisecond
)

// Subscribe implements [queue.Broker]. No request is made until Receive is called.
func (b *Broker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	switch {
	case cfg.Lease < 0 || cfg.Lease > maxVisibility:
		return nil, fmt.Errorf("lease %v: use 1s to %v", cfg.Lease, maxVisibility)
	case cfg.Slots < 0:
		return nil, fmt.Errorf("slots %d: must not be negative", cfg.Slots)
	case cfg.Lease == 0:
		cfg.Lease = queue.DefaultLease
	}
	q, err := b.find(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %q: %w", name, err)
	}
	s := &subscription{b: b, q: q, lease: cfg.Lease, done: make(chan struct{}), news: make(chan struct{}), target: 1}
	s.slots = slots{size: max(1, cfg.Slots), held: make(map[*handle]struct{}), freed: s.announce}
	s.pollCtx, s.cancel = context.WithCancel(b.base)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.isClosing() {
		s.cancel()
		return nil, queue.ErrClosed
	}
	b.subs[s] = struct{}{}
	return s, nil
}

// Healthy implements [queue.Subscription].
func (s *subscription) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("subscription to %q: %w", s.q.name, queue.ErrClosed)
	case s.failures > 0:
		return s.last
	}
	return nil
}

func (s *subscription) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// announce tells everybody who waits to look again.
func (s *subscription) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announceLocked()
}

func (s *subscription) announceLocked() {
	close(s.news)
	s.news = make(chan struct{})
}

// Receive implements [queue.Subscription]. When ctx ends during the last call that waits, it goes on for up to a second, in case that messages
// are on their way, and returns those.
func (s *subscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	s.mu.Lock()
	s.waiters++
	s.mu.Unlock()
	leases, err := s.receive(ctx, max(1, most))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters--; s.waiters == 0 && len(s.arrived) > 0 {
		s.bePatient()
	}
	return leases, err
}

func (s *subscription) receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, fmt.Errorf("receive from %q: %w", s.q.name, queue.ErrClosed)
		}
		if leases := s.take(most); len(leases) > 0 {
			s.mu.Unlock()
			return leases, nil
		}
		if err := ctx.Err(); err != nil {
			return s.stop(err, most) // unlocks
		}
		if s.failed != nil {
			return nil, s.fail(ctx) // unlocks
		}
		next := s.ask(ctx, most, time.Now()) //nolint:contextcheck // polls outlive the call that starts them
		news := s.news
		s.mu.Unlock()
		s.wait(ctx, news, next)
	}
}

// take hands out what has arrived and is still good. The caller holds mu.
func (s *subscription) take(most int) []*queue.Lease {
	var leases []*queue.Lease
	now := time.Now()
	for len(s.arrived) > 0 && len(leases) < most {
		h := s.arrived[0]
		s.arrived = s.arrived[1:]
		if h.live(now) { // else it comes again
			leases = append(leases, h.lease())
		}
	}
	return leases
}

// wait blocks until there are news, ctx or the subscription ends, or it is next.
func (s *subscription) wait(ctx context.Context, news <-chan struct{}, next time.Time) {
	var timeout <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(time.Until(next), time.Millisecond))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-news:
	case <-timeout:
	case <-ctx.Done():
	case <-s.done:
	}
}

// stop ends a Receive whose ctx is over. The caller holds mu, stop unlocks it.
func (s *subscription) stop(err error, most int) ([]*queue.Lease, error) {
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	for {
		leases := s.take(most)
		news := s.news
		over := s.closed || s.polls == 0 || s.waiters > 1
		s.mu.Unlock()
		switch {
		case len(leases) > 0:
			return leases, nil
		case over:
			return nil, err
		}
		select {
		case <-news:
		case <-timer.C:
			s.cutPolls()
		}
		s.mu.Lock()
	}
}

// cutPolls cancels the open polls, if nobody else waits for them.
func (s *subscription) cutPolls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters > 1 {
		s.announceLocked()
		return
	}
	s.cancel()
	s.pollCtx, s.cancel = context.WithCancel(s.b.base)
}

// fail returns the failure of a poll to one Receive, after a pause that grows. The caller holds mu, fail unlocks it.
func (s *subscription) fail(ctx context.Context) error {
	err, failure := s.failed, s.failures-1
	s.failed = nil
	s.mu.Unlock()
	timer := time.NewTimer(backoff(max(failure, 0)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.done:
	}
	return err
}

// Close implements [queue.Subscription]. Open polls are waited for, for up to a second; what they bring is given back.
func (s *subscription) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	close(s.done)
	arrived := s.arrived
	s.arrived = nil
	if s.waitTimer != nil {
		s.waitTimer.Stop()
	}
	cut := time.AfterFunc(stopWait, s.cancel)
	s.mu.Unlock()
	s.giveBack(arrived)
	s.wg.Wait()
	cut.Stop()
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.b.mu.Lock()
	delete(s.b.subs, s)
	s.b.mu.Unlock()
	return nil
}
