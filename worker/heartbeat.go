package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
)

// heart keeps the leases and claims of all attempts alive, from receive to settlement. One goroutine looks at all of them, so that an
// attempt costs a map entry and not a timer.
type heart struct {
	w     *Worker
	every time.Duration // how often an attempt is extended

	mu       sync.Mutex
	alive    map[*attempt]struct{}
	attempts sync.WaitGroup // of all that are alive
}

// heartLimit bounds the leases that are extended at once; drivers join them in batches.
const heartLimit = 32

func newHeart(w *Worker) *heart {
	return &heart{w: w, every: w.cfg.Heartbeat, alive: make(map[*attempt]struct{})}
}

// beat is the part of an attempt that its goroutine and the heartbeat share.
type beat struct {
	mu sync.Mutex
	// held is the attempt's claim; zero Token before it is taken.
	held idempotency.Held
	// claim and lease go their own ways: a store that hangs must not keep leases from being extended, nor a broker claims.
	claim, lease pulse
	// committing says that the handler's transaction is about to complete the claim, and then holds it better than an extension could, which
	// would wait for it and have all others wait.
	committing bool
	// leaseGone says that the broker has taken the message back.
	leaseGone bool
}

// pulse says when one thing is extended next.
type pulse struct {
	next time.Time
	busy bool // an extension is under way
}

func (h *heart) add(list []*attempt) {
	h.attempts.Add(len(list))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range list {
		a.beat.lease.next = a.received.Add(h.every)
		h.alive[a] = struct{}{}
	}
}

// remove lets go of an attempt that is over. Further calls do nothing.
func (h *heart) remove(a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.alive[a]; ok {
		delete(h.alive, a)
		h.attempts.Done()
	}
}

// hurry ends the patience with all handlers that run.
func (h *heart) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.alive {
		a.watch.hurry()
	}
}

func (h *heart) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.alive)
}

// run extends what is due until ctx is done, and joins every extension before it returns.
func (h *heart) run(ctx context.Context) {
	tick := time.NewTicker(max(h.every/4, 20*time.Millisecond))
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	limit := make(chan struct{}, heartLimit)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			claims, leases := h.due(now)
			if len(claims) > 0 {
				wg.Go(func() { h.extendClaims(ctx, claims) })
			}
			for _, a := range leases {
				wg.Go(func() { // the loop itself must not wait for the broker
					limit <- struct{}{}
					defer func() { <-limit }()
					h.extendLease(ctx, a)
				})
			}
		}
	}
}

func (h *heart) due(now time.Time) (claims, leases []*attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.alive {
		claim, lease := a.beat.take(now)
		if claim {
			claims = append(claims, a)
		}
		if lease {
			leases = append(leases, a)
		}
	}
	return claims, leases
}

// extendClaims prolongs the claims of all attempts in one call.
func (h *heart) extendClaims(ctx context.Context, list []*attempt) {
	ctx, cancel := context.WithTimeout(ctx, h.every)
	defer cancel()
	start := time.Now()
	exts := make([]idempotency.Extension, len(list))
	for i, a := range list {
		exts[i] = idempotency.Extension{Held: a.beat.claimed(), Lease: h.w.cfg.Lease}
	}
	for i, err := range h.w.cfg.Store.Extend(ctx, exts) {
		a, next := list[i], start.Add(h.every)
		switch {
		case errors.Is(err, idempotency.ErrClaimLost):
			if a.watch.interrupt(ErrClaimLost, a.kind.config.TimeoutGrace) {
				h.w.observe(&ClaimLost{Job: a.job, Kind: a.kind.name})
			}
		case err != nil:
			next = start.Add(h.every / 4)
		}
		a.beat.rest(&a.beat.claim, next)
	}
}

func (h *heart) extendLease(ctx context.Context, a *attempt) {
	ctx, cancel := context.WithTimeout(ctx, h.every)
	defer cancel()
	start := time.Now()
	next := start.Add(h.every)
	err := a.lease.Extend(ctx, h.w.cfg.Lease)
	switch {
	case errors.Is(err, queue.ErrLeaseLost):
		h.leaseLost(a)
	case err != nil && !errors.Is(err, queue.ErrSettled):
		next = start.Add(h.every / 4)
	case err == nil && !a.lease.Ceiling.IsZero():
		// At its ceiling a lease is not extended any more: what ends is then noticed when it ends.
		if end := a.lease.Deadline(); end.Before(next) {
			next = end
		}
	}
	a.beat.rest(&a.beat.lease, next)
}

// leaseLost ends an unkeyed handler: another worker may start the same job now. A keyed one goes on, since the redelivered copy finds the
// claim held and waits.
func (h *heart) leaseLost(a *attempt) {
	a.beat.mu.Lock()
	first := !a.beat.leaseGone
	keyed := a.beat.held.Token != 0
	a.beat.leaseGone = true
	a.beat.mu.Unlock()
	if !first || !a.watch.runs() {
		return
	}
	h.w.observe(&LeaseLost{Job: a.job, Kind: a.kind.name})
	if !keyed {
		a.watch.interrupt(ErrLeaseLost, a.kind.config.TimeoutGrace)
	}
}

// take reports which of claim and lease are due, and marks them busy.
func (b *beat) take(now time.Time) (claim, lease bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	claim = b.held.Token != 0 && !b.committing && b.claim.take(now)
	lease = !b.leaseGone && b.lease.take(now)
	return claim, lease
}

func (p *pulse) take(now time.Time) bool {
	if p.busy || now.Before(p.next) {
		return false
	}
	p.busy = true
	return true
}

// rest ends an extension of claim or lease.
func (b *beat) rest(p *pulse, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.busy, p.next = false, next
}

func (b *beat) claimed() idempotency.Held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// lost reports whether the broker has taken the message back.
func (b *beat) lost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leaseGone
}

// hold hands the heartbeat a claim to keep, and says when to extend it first.
func (b *beat) hold(held idempotency.Held, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held, b.claim.next = held, next
}

// commit tells the heartbeat that a commit is under way, or is over.
func (b *beat) commit(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.committing = on
}
