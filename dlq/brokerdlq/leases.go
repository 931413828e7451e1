package brokerdlq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// settlers is how many broker calls a scan makes at once.
const settlers = 64

// rewriteAt is the number of deliveries from which a message is given back as a fresh one, where the broker counts them: looking must not
// bring a message to the limit at which it is dropped, 1000 in our own drivers.
const rewriteAt = 500

// closeTime bounds the end of a scan. Leases that are not given back by then run out.
const closeTime = 30 * time.Second

// visibleTime bounds the wait for what was given back to be ready again: counts of some brokers lag for longer.
const visibleTime = 2 * time.Second

// leaseSet is what a scan has leased.
type leaseSet struct {
	subs    map[*queue.Lease]queue.Subscription // that delivered it
	bytes   int                                 // of bodies
	current int                                 // how many the scan's current subscription delivered
	removed int64                               // how many were acked: the broker's count may have them still
}

func (s *scan) addLease(l *queue.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased.subs[l] = s.sub
	s.leased.bytes += len(l.Body)
	s.leased.current++
}

func (s *scan) dropLease(l *queue.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, held := s.leased.subs[l]
	if !held {
		return
	}
	delete(s.leased.subs, l)
	s.leased.bytes -= len(l.Body)
	if sub == s.sub && sub != nil {
		s.leased.current--
	}
}

// use makes sub the subscription of the scan; nil ends it.
func (s *scan) use(sub queue.Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sub, s.leased.current = sub, 0
}

// free counts the slots that the subscription has left.
func (s *scan) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slots - s.leased.current
}

// leasedSize counts the leased messages and the bytes of their bodies.
func (s *scan) leasedSize() (n, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leased.subs), s.leased.bytes
}

// removed counts a message that was acked.
func (s *scan) removed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased.removed++
}

// known counts the messages of a queue that the broker may count as in flight because of this scan.
func (s *scan) known(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.leased.removed
	for l := range s.leased.subs {
		if l.Queue == name {
			n++
		}
	}
	return n
}

func (s *scan) all() []*queue.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	leases := make([]*queue.Lease, 0, len(s.leased.subs))
	for l := range s.leased.subs {
		leases = append(leases, l)
	}
	return leases
}

// heartbeat extends all leases until ctx is done. A message that is lost comes again.
func (s *scan) heartbeat(ctx context.Context) {
	tick := time.NewTicker(max(s.cfg.Lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = each(ctx, s.all(), func(l *queue.Lease) error { // what fails is tried again at the next tick
				err := l.Extend(ctx, s.cfg.Lease)
				if errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrSettled) {
					s.dropLease(l)
				}
				return err
			})
		}
	}
}

// close ends the scan and gives back what is leased, also after a cancellation. It returns when the broker counts as ready what was given
// back, or after visibleTime: the next one to look sees it.
func (s *scan) close(ctx context.Context) error {
	s.stop()
	s.heartbeats.Wait()
	err := s.unsubscribe()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	want := s.readyAfter(ctx)
	if err = errors.Join(err, each(ctx, s.all(), func(l *queue.Lease) error { return giveBack(ctx, s.cfg.Broker, l) })); err == nil {
		s.awaitReady(ctx, want)
	}
	return err
}

// readyAfter returns how many messages will be ready in each queue when all is given back. Queues that the broker cannot count are left out.
func (s *scan) readyAfter(ctx context.Context) map[string]int64 {
	want := map[string]int64{}
	for _, l := range s.all() {
		want[l.Queue]++
	}
	for name := range want {
		depth, err := s.cfg.Broker.Depth(ctx, name)
		if err != nil || !depth.Ready.Known {
			delete(want, name)
			continue
		}
		want[name] += depth.Ready.N
	}
	return want
}

// awaitReady waits until each queue has as many ready messages as want says. Others may receive some meanwhile, so it waits for a bounded time.
func (s *scan) awaitReady(ctx context.Context, want map[string]int64) {
	ctx, cancel := context.WithTimeout(ctx, visibleTime)
	defer cancel()
	for name, n := range want {
		for wait := 20 * time.Millisecond; ; wait *= 2 { // a count may be a paid call
			depth, err := s.cfg.Broker.Depth(ctx, name)
			if err != nil || depth.Ready.N >= n || !pause.For(ctx, wait) {
				break
			}
		}
	}
}

// giveBack makes a message visible again.
func giveBack(ctx context.Context, broker queue.Broker, l *queue.Lease) error {
	s := queue.Settlement{Action: queue.ActionRelease}
	s.Uncharged = l.DeliveryCount >= rewriteAt && broker.Capabilities(l.Queue).CountsAttempts
	err := l.Settle(ctx, s)
	if err == nil || errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrSettled) {
		return nil
	}
	return fmt.Errorf("give back to %s, where it comes back when its lease ends: %w", l.Queue, err)
}

// each calls do for all leases, many at once, and returns the first error. Those that ctx leaves no time for are left out.
func each(ctx context.Context, leases []*queue.Lease, do func(*queue.Lease) error) error {
	var once sync.Once
	var first error
	parallel(len(leases), func(i int) {
		err := ctx.Err()
		if err == nil {
			err = do(leases[i])
		}
		if err != nil {
			once.Do(func() { first = err })
		}
	})
	return first
}

// parallel calls do for 0 to n-1, many at once: drivers put calls that come together into one request.
func parallel(n int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(settlers, n) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}
