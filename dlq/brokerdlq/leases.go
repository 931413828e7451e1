package brokerdlq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// settlers is how many broker calls a pass makes at once.
const settlers = 64

// rewriteAt is the number of deliveries from which a message is given back as a fresh one, where the broker counts: a limit after which
// it drops messages, of 1000 by our own drivers, must not be reached by looking.
const rewriteAt = 500

// closeTime bounds the end of a pass. Leases that are not given back by then run out.
const closeTime = 30 * time.Second

// hand is what a pass holds.
type hand struct {
	leases map[*queue.Lease]queue.Subscription
	bytes  int // of bodies
	sub    int // how many are of the pass's subscription
}

func (d *drain) hold(l *queue.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hand.leases[l] = d.sub
	d.hand.bytes += len(l.Body)
	d.hand.sub++
}

func (d *drain) drop(l *queue.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sub, held := d.hand.leases[l]
	if !held {
		return
	}
	delete(d.hand.leases, l)
	d.hand.bytes -= len(l.Body)
	if sub == d.sub && sub != nil {
		d.hand.sub--
	}
}

// use makes sub the subscription of the pass; nil ends it.
func (d *drain) use(sub queue.Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sub, d.hand.sub = sub, 0
}

// free counts the slots that the subscription has left.
func (d *drain) free() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slots - d.hand.sub
}

// held counts the messages in hand and the bytes of their bodies.
func (d *drain) held() (n, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.hand.leases), d.hand.bytes
}

func (d *drain) all() []*queue.Lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	leases := make([]*queue.Lease, 0, len(d.hand.leases))
	for l := range d.hand.leases {
		leases = append(leases, l)
	}
	return leases
}

// heartbeat keeps leased what is in hand, until ctx is done. A message that is lost comes again.
func (d *drain) heartbeat(ctx context.Context) {
	tick := time.NewTicker(max(d.cfg.Lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = each(ctx, d.all(), func(l *queue.Lease) error { // what fails is tried again at the next tick
				err := l.Extend(ctx, d.cfg.Lease)
				if errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrSettled) {
					d.drop(l)
				}
				return err
			})
		}
	}
}

// close ends the pass and gives back what is in hand, also after a cancellation.
func (d *drain) close(ctx context.Context) error {
	d.stop()
	d.beat.Wait()
	err := d.unsubscribe()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return errors.Join(err, each(ctx, d.all(), func(l *queue.Lease) error { return giveBack(ctx, d.cfg.Broker, l) }))
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
