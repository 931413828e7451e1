package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// queueRunner takes messages from one queue and starts an attempt for each.
type queueRunner struct {
	w      *Worker
	cfg    QueueConfig
	limits queue.Capabilities
	slots  *slots
	sub    queue.Subscription
	jobs   chan *attempt // at most as many as slots were taken

	paused atomic.Bool // the broker could not be asked
}

// blocks reports whether a group waits behind a dead job.
func (q *queueRunner) blocks() bool { return q.cfg.BlockOnDead && q.limits.FIFO }

// class is that of its jobs.
func (q *queueRunner) class() pools.Class { return pools.Class(q.cfg.Priority) } //nolint:gosec // validated

// receiveLimit is the most messages asked for in one call.
const receiveLimit = 64

// run receives until stop is done. Only an error that no waiting can mend ends it early.
func (q *queueRunner) run(stop context.Context) error {
	for range q.slots.size {
		q.w.slotGoroutines.Go(func() { q.work(stop) })
	}
	defer close(q.jobs)
	for {
		n := q.slots.take(stop, receiveLimit)
		if n == 0 {
			return nil
		}
		if !q.w.storeHealth.wait(stop) {
			q.slots.received(n, 0)
			return nil
		}
		leases, err := q.receive(stop, n)
		q.slots.received(n, len(leases))
		q.start(leases)
		switch {
		case stop.Err() != nil:
			return nil
		case errors.Is(err, queue.ErrClosed):
			return fmt.Errorf("receive from queue %q: %w", q.cfg.Name, err)
		case err != nil:
			if q.paused.CompareAndSwap(false, true) {
				q.w.observe(&Paused{What: q.cfg.Name, Err: err})
			}
			if !pause.For(stop, jitter(200*time.Millisecond)) {
				return nil
			}
		}
	}
}

// receive asks the broker for n messages. After a failure it reports that leasing has resumed once there is an answer, or once a call waits for
// messages on a healthy subscription: an empty queue answers nothing.
func (q *queueRunner) receive(ctx context.Context, n int) ([]*queue.Lease, error) {
	if q.paused.Load() {
		waiting, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() {
			for pause.For(waiting, time.Second) {
				if q.sub.Healthy() == nil {
					q.resumed()
				}
			}
		})
		defer watch.Wait()
		defer stop()
	}
	leases, err := q.sub.Receive(ctx, n)
	if err == nil {
		q.resumed()
	}
	return leases, err
}

func (q *queueRunner) resumed() {
	if q.paused.CompareAndSwap(true, false) {
		q.w.observe(&Paused{What: q.cfg.Name})
	}
}

func (q *queueRunner) start(leases []*queue.Lease) {
	if len(leases) == 0 {
		return
	}
	now := time.Now()
	q.w.observe(&Received{Queue: q.cfg.Name, Count: len(leases)})
	list := make([]*attempt, len(leases))
	for i, lease := range leases {
		list[i] = &attempt{w: q.w, lease: lease, queue: q, received: now}
	}
	q.w.heartbeat.add(list)
	for _, a := range list {
		q.jobs <- a
	}
}

// work runs attempts one after the other. There is one such goroutine per slot, so that an attempt finds a stack that has grown already.
func (q *queueRunner) work(stop context.Context) {
	var s slot
	ended := false
	defer func() {
		s.close()
		if !ended { // code of the program ended the goroutine
			q.slots.put(1)
			q.w.slotGoroutines.Go(func() { q.work(stop) })
		}
	}()
	for a := range q.jobs {
		a.run(stop, &s)
		q.slots.put(1)
	}
	ended = true
}
