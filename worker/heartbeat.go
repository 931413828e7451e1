package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
)

// heartbeat keeps the leases and claims of all attempts alive, from receive to settlement. One goroutine looks at all of them, so that an
// attempt costs a map entry and not a timer.
type heartbeat struct {
	w     *Worker
	every time.Duration // how often an attempt is extended

	mu       sync.Mutex
	tracked  map[*attempt]struct{}
	attempts sync.WaitGroup // of all that are alive
}

// maxConcurrentExtends bounds the leases that are extended at once; drivers join them in batches.
const maxConcurrentExtends = 32

func newHeartbeat(w *Worker) *heartbeat {
	return &heartbeat{w: w, every: w.cfg.Heartbeat, tracked: make(map[*attempt]struct{})}
}

// keepalive is the part of an attempt that its goroutine and the heartbeat share.
type keepalive struct {
	mu sync.Mutex
	// claimHandle is the attempt's claim; zero Token before it is taken.
	claimHandle idempotency.Handle
	// claim and lease go their own ways: a store that hangs must not keep leases from being extended, nor a broker claims.
	claim, lease extension
	// committing says that the handler's transaction is about to complete the claim, and then holds it better than an extension could, which
	// would wait for it and have all others wait.
	committing bool
	// leaseGone says that the broker has taken the message back.
	leaseGone bool
}

// extension says when one thing is extended next.
type extension struct {
	next time.Time
	busy bool // an extension is under way
}

func (h *heartbeat) add(list []*attempt) {
	h.attempts.Add(len(list))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range list {
		a.keepalive.lease.next = a.received.Add(h.every)
		h.tracked[a] = struct{}{}
	}
}

// remove lets go of an attempt that is over. Further calls do nothing.
func (h *heartbeat) remove(a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.tracked[a]; ok {
		delete(h.tracked, a)
		h.attempts.Done()
	}
}

// expireHandlers gives up all handlers that run, now.
func (h *heartbeat) expireHandlers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.tracked {
		a.running.expire()
	}
}

func (h *heartbeat) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.tracked)
}

// run extends what is due until ctx is done, and joins every extension before it returns.
func (h *heartbeat) run(ctx context.Context) {
	tick := time.NewTicker(max(h.every/4, 20*time.Millisecond))
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	limit := make(chan struct{}, maxConcurrentExtends)
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

func (h *heartbeat) due(now time.Time) (claims, leases []*attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.tracked {
		claim, lease := a.keepalive.begin(now)
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
func (h *heartbeat) extendClaims(ctx context.Context, list []*attempt) {
	ctx, cancel := context.WithTimeout(ctx, h.every)
	defer cancel()
	start := time.Now()
	exts := make([]idempotency.Extension, len(list))
	for i, a := range list {
		exts[i] = idempotency.Extension{Handle: a.keepalive.currentClaim(), Lease: h.w.cfg.Lease}
	}
	for i, err := range h.w.cfg.Store.Extend(ctx, exts) {
		a, next := list[i], start.Add(h.every)
		switch {
		case errors.Is(err, idempotency.ErrClaimLost):
			if a.running.interrupt(ErrClaimLost, a.kind.config.TimeoutGrace) {
				h.w.observe(&Lost{Job: a.job, Kind: a.kind.name, Err: ErrClaimLost})
			}
		case err != nil:
			next = start.Add(h.every / 4)
		}
		a.keepalive.end(&a.keepalive.claim, next)
	}
}

func (h *heartbeat) extendLease(ctx context.Context, a *attempt) {
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
	a.keepalive.end(&a.keepalive.lease, next)
}

// leaseLost ends an unkeyed handler: another worker may start the same job now. A keyed one goes on, since the redelivered copy finds the
// claim held and waits.
func (h *heartbeat) leaseLost(a *attempt) {
	a.keepalive.mu.Lock()
	first := !a.keepalive.leaseGone
	keyed := a.keepalive.claimHandle.Token != 0
	a.keepalive.leaseGone = true
	a.keepalive.mu.Unlock()
	if !first || !a.running.interruptible() {
		return
	}
	h.w.observe(&Lost{Job: a.job, Kind: a.kind.name, Err: ErrLeaseLost})
	if !keyed {
		a.running.interrupt(ErrLeaseLost, a.kind.config.TimeoutGrace)
	}
}

// begin reports which of claim and lease are due, and marks them busy.
func (b *keepalive) begin(now time.Time) (claim, lease bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	claim = b.claimHandle.Token != 0 && !b.committing && b.claim.begin(now)
	lease = !b.leaseGone && b.lease.begin(now)
	return claim, lease
}

func (p *extension) begin(now time.Time) bool {
	if p.busy || now.Before(p.next) {
		return false
	}
	p.busy = true
	return true
}

// end ends an extension of claim or lease.
func (b *keepalive) end(p *extension, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.busy, p.next = false, next
}

func (b *keepalive) currentClaim() idempotency.Handle {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claimHandle
}

// leaseLost reports whether the broker has taken the message back.
func (b *keepalive) leaseLost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leaseGone
}

// setClaim hands the heartbeat a claim to keep, and says when to extend it first.
func (b *keepalive) setClaim(held idempotency.Handle, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claimHandle, b.claim.next = held, next
}

// setCommitting tells the heartbeat that a commit is under way, or is over.
func (b *keepalive) setCommitting(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.committing = on
}
