package storetest

import (
	"time"

	"github.com/caisson-go/caisson/idempotency"
)

func retentionTests() []testCase {
	return []testCase{
		{"Retention/completed keys go when their time is over", testCompletedExpires},
		{"Retention/closed runs go when their time is over", testClosedExpires},
		{"Retention/nothing unfinished goes", testUnfinishedStays},
		{"Retention/limit is honoured", testExpireLimit},
		{"Retention/default is not short", testDefaultRetention},
	}
}

func (e *env) completeFor(h idempotency.Handle, retention time.Duration) {
	e.Helper()
	c := idempotency.Completion{Handle: h, Retention: retention}
	e.answered("complete", e.store.Complete(e.Context(), []idempotency.Completion{c}), nil)
}

func (e *env) gone(key idempotency.Key) {
	e.Helper()
	_, err := e.store.Get(e.Context(), key)
	e.answered("get", []error{err}, idempotency.ErrNotFound)
}

func testCompletedExpires(e *env) {
	shortly, longer := e.request(), e.request()
	e.completeFor(e.acquire(shortly, 1), e.short)
	e.completeFor(e.acquire(longer, 1), long)
	e.pass(e.short)
	if n := e.expireAll(); n < 1 {
		e.Errorf("expired %d records", n)
	}
	e.gone(shortly.Key)
	e.wants(longer, idempotency.StatusCompleted)
	e.acquire(shortly, 1)
}

func testClosedExpires(e *env) {
	shared := e.request()
	other := e.sharing(shared)
	for _, r := range []idempotency.Request{shared, other} {
		e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Final: true, Retention: e.short}, nil)
	}
	kept := e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(kept, 1), Final: true, Retention: long}, nil)
	e.pass(e.short)
	e.expireAll()
	e.gone(shared.Key)
	e.wants(kept, idempotency.StatusClosed)
	e.acquire(shared, 1)
}

func testUnfinishedStays(e *env) {
	running, crashed, failed, abandoned := e.request(), e.request(), e.request(), e.request()
	e.acquire(running, 1)
	crashed.Lease = e.short
	e.acquire(crashed, 1)
	e.fail(idempotency.Failure{Handle: e.acquire(failed, 1), Retention: e.short}, nil)
	e.abandon(e.acquire(abandoned, 1), 0, nil)
	// A key whose run was closed is unfinished again once another job claims it, and so is a closed-over ledger entry.
	reclaimed := e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(reclaimed, 1), Final: true, Retention: e.short}, nil)
	reclaimed = e.sharing(reclaimed)
	e.acquire(reclaimed, 1)
	e.pass(2 * e.short)
	e.expireAll()

	e.wants(running, idempotency.StatusBusy)
	e.acquire(crashed, 2)
	e.acquire(failed, 2)
	e.acquire(abandoned, 1)
	e.wants(reclaimed, idempotency.StatusBusy)
}

func testExpireLimit(e *env) {
	e.expireAll()
	const records = 7
	for range records {
		e.completeFor(e.acquire(e.request(), 1), e.short)
	}
	e.pass(e.short)
	total := 0
	for {
		n, err := e.store.Expire(e.Context(), 3)
		if err != nil {
			e.Fatalf("expire: %v", err)
		}
		if n > 3 && !e.whole {
			e.Fatalf("expired %d records with a limit of 3", n)
		}
		if n == 0 {
			break
		}
		total += n
	}
	if total < records {
		e.Errorf("expired %d records, want at least %d", total, records)
	}
}

func testDefaultRetention(e *env) {
	completed, closed := e.request(), e.request()
	e.completeFor(e.acquire(completed, 1), 0)
	e.fail(idempotency.Failure{Handle: e.acquire(closed, 1), Final: true}, nil)
	until := e.get(completed.Key).Until
	e.pass(e.short)
	e.expireAll()
	e.wants(completed, idempotency.StatusCompleted)
	e.wants(closed, idempotency.StatusClosed)
	left := until.Sub(e.wants(func() idempotency.Request { r := e.request(); r.Lease = time.Second; return r }(), idempotency.StatusAcquired).Until)
	if left > idempotency.DefaultRetention || left < idempotency.DefaultRetention-time.Hour {
		e.Errorf("kept for %v, want %v", left, idempotency.DefaultRetention)
	}
}
