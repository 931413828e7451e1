package storetest

import "github.com/caisson-go/caisson/idempotency"

func fencingTests() []testCase {
	return []testCase{
		{"Fencing/takeover after the lease", testTakeover},
		{"Fencing/crash between claim and completion", testCrashTakeover},
		{"Fencing/late success counts", testLateCompletion},
		{"Fencing/late success after the end of the attempt", testLateAfterEnd},
		{"Fencing/expired but untaken can be ended", testExpiredUntaken},
		{"Fencing/extend keeps the claim", testExtend},
		{"Fencing/a claim ends once", testEndsOnce},
		{"Fencing/repeated completion is a no-op", testRepeatedCompletion},
		{"Fencing/job and run must match", testHeldMustMatch},
		{"Fencing/token rises over an expiry", testTokenOverExpiry},
	}
}

// lost fails unless every write with h answers ErrClaimLost.
func (e *env) lost(h idempotency.Handle) {
	e.Helper()
	e.complete(h, "too late", idempotency.ErrClaimLost)
	e.ended(h)
}

// ended fails unless every write with h but a late completion answers ErrClaimLost.
func (e *env) ended(h idempotency.Handle) {
	e.Helper()
	e.extend(h, long, idempotency.ErrClaimLost)
	e.abandon(h, 0, idempotency.ErrClaimLost)
	e.fail(idempotency.Failure{Handle: h}, idempotency.ErrClaimLost)
	e.fail(idempotency.Failure{Handle: h, Final: true}, idempotency.ErrClaimLost)
}

func testTakeover(e *env) {
	r := e.request()
	r.Lease = e.short
	old := e.acquire(r, 1)
	e.pass(e.short)
	r.Owner, r.Lease = "owner-2", long
	next := e.acquire(r, 2)
	if next.Token <= old.Token {
		e.Errorf("token went from %d to %d", old.Token, next.Token)
	}
	e.lost(old)
	e.complete(next, "done", nil)
	e.lost(old)
	if got := e.wants(r, idempotency.StatusCompleted); string(got.Result.Data) != "done" {
		e.Errorf("result %q, want the one of the live claim", got.Result.Data)
	}
}

// Field case H1: the process dies between the claim and its completion. The next owner neither acks it as a duplicate nor waits for
// the key to expire.
func testCrashTakeover(e *env) {
	r := e.request()
	r.Lease = e.short
	old := e.acquire(r, 1)
	r.Owner, r.Lease = "owner-2", long
	busy := e.claim(r)
	if busy.Status == idempotency.StatusBusy {
		if busy.Wait > e.short {
			e.Errorf("busy for %v, longer than the lease of %v", busy.Wait, e.short)
		}
		e.pass(busy.Wait)
		busy = e.claim(r)
	}
	if busy.Status != idempotency.StatusAcquired || busy.Attempt != 2 {
		e.Fatalf("after one lease the claim answers %v, attempt %d", busy.Status, busy.Attempt)
	}
	e.lost(old)
}

func testLateCompletion(e *env) {
	r := e.request()
	r.Lease = e.short
	h := e.acquire(r, 1)
	e.pass(2 * e.short)
	e.complete(h, "late", nil)
	if c := e.wants(r, idempotency.StatusCompleted); string(c.Result.Data) != "late" {
		e.Errorf("result %q", c.Result.Data)
	}
}

// A handler that was given up may succeed after all. That counts until somebody else has claimed the key, or the run was closed.
func testLateAfterEnd(e *env) {
	for _, end := range []func(h idempotency.Handle){
		func(h idempotency.Handle) { e.abandon(h, 0, nil) },
		func(h idempotency.Handle) { e.fail(idempotency.Failure{Handle: h, Delay: long}, nil) },
	} {
		r := e.request()
		h := e.acquire(r, 1)
		end(h)
		e.complete(h, "late", nil)
		if c := e.wants(r, idempotency.StatusCompleted); string(c.Result.Data) != "late" {
			e.Errorf("result %q", c.Result.Data)
		}
	}
	r := e.request()
	h := e.acquire(r, 1)
	e.fail(idempotency.Failure{Handle: h}, nil)
	next := e.acquire(r, 2)
	e.complete(h, "too late", idempotency.ErrClaimLost)
	e.fail(idempotency.Failure{Handle: next, Final: true}, nil)
	e.complete(next, "too late", idempotency.ErrClaimLost)
}

func testExpiredUntaken(e *env) {
	r := e.request()
	r.Lease = e.short
	h := e.acquire(r, 1)
	e.pass(2 * e.short)
	e.extend(h, long, nil)
	e.wants(r, idempotency.StatusBusy)
	e.extend(h, e.short, nil)
	e.pass(2 * e.short)
	e.abandon(h, 0, nil)

	h = e.acquire(r, 1)
	e.pass(2 * e.short)
	e.fail(idempotency.Failure{Handle: h}, nil)
	e.acquire(r, 2)
}

func testExtend(e *env) {
	r := e.request()
	r.Lease = e.short
	h := e.acquire(r, 1)
	e.extend(h, long, nil)
	e.pass(2 * e.short)
	c := e.wants(r, idempotency.StatusBusy)
	if c.Wait > long {
		e.Errorf("busy for %v after an extension by %v", c.Wait, long)
	}
	// An extension counts from now: it can shorten.
	e.extend(h, e.short, nil)
	e.pass(e.short)
	e.acquire(r, 2)
}

func testEndsOnce(e *env) {
	h := e.acquire(e.request(), 1)
	e.abandon(h, 0, nil)
	e.ended(h)
	h = e.acquire(e.request(), 1)
	e.fail(idempotency.Failure{Handle: h}, nil)
	e.ended(h)
	h = e.acquire(e.request(), 1)
	e.fail(idempotency.Failure{Handle: h, Final: true}, nil)
	e.lost(h)
	h = e.acquire(e.request(), 1)
	e.complete(h, "", nil)
	e.extend(h, long, idempotency.ErrClaimLost)
	e.abandon(h, 0, idempotency.ErrClaimLost)
	e.fail(idempotency.Failure{Handle: h}, idempotency.ErrClaimLost)
}

func testRepeatedCompletion(e *env) {
	r := e.request()
	h := e.acquire(r, 1)
	e.complete(h, "first", nil)
	e.complete(h, "second", nil)
	if c := e.wants(r, idempotency.StatusCompleted); string(c.Result.Data) != "first" {
		e.Errorf("result %q, want the first", c.Result.Data)
	}
}

func testHeldMustMatch(e *env) {
	r := e.request()
	h := e.acquire(r, 1)
	for _, change := range []func(*idempotency.Handle){
		func(h *idempotency.Handle) { h.Job = "somebody else" }, func(h *idempotency.Handle) { h.Run++ },
		func(h *idempotency.Handle) { h.Token-- }, func(h *idempotency.Handle) { h.Token++ },
		func(h *idempotency.Handle) { h.Key.Scope = "elsewhere" }, func(h *idempotency.Handle) { h.Key.Value += "x" },
	} {
		other := h
		change(&other)
		e.lost(other)
	}
	e.complete(h, "", nil)
	other := h
	other.Job = "somebody else"
	e.complete(other, "", idempotency.ErrClaimLost)
}

func testTokenOverExpiry(e *env) {
	r := e.request()
	old := e.acquire(r, 1)
	c := idempotency.Completion{Handle: old, Retention: e.short}
	e.answered("complete", e.store.Complete(e.Context(), []idempotency.Completion{c}), nil)
	e.pass(e.short)
	e.expireAll()
	next := e.acquire(r, 1)
	if next.Token <= old.Token {
		e.Errorf("token went from %d to %d over an expiry", old.Token, next.Token)
	}
	e.lost(old)
}
