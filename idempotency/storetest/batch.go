package storetest

import (
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/idempotency"
)

func batchTests() []testCase {
	return []testCase{
		{"Batch/empty", testEmptyBatches},
		{"Batch/mixed outcomes keep their order", testMixedBatch},
		{"Batch/one key twice", testKeyTwice},
		{"Batch/ends mix won and lost", testMixedEnds},
		{"Batch/large", testLargeBatch},
	}
}

func testEmptyBatches(e *env) {
	ctx := e.Context()
	n := len(e.store.Claim(ctx, nil)) + len(e.store.Extend(ctx, nil)) + len(e.store.Complete(ctx, nil)) +
		len(e.store.Abandon(ctx, nil)) + len(e.store.Fail(ctx, nil))
	if n != 0 {
		e.Errorf("empty batches got %d answers", n)
	}
}

func testMixedBatch(e *env) {
	fresh, busy, notDue, completed, closed := e.request(), e.request(), e.request(), e.request(), e.request()
	e.acquire(busy, 1)
	e.fail(idempotency.Failure{Handle: e.acquire(notDue, 1), Delay: long}, nil)
	e.complete(e.acquire(completed, 1), "result", nil)
	e.fail(idempotency.Failure{Handle: e.acquire(closed, 1), Final: true}, nil)
	conflict := e.sharing(completed)
	conflict.Fingerprint = idempotency.FingerprintOf([]byte("other"))
	invalid := e.request()
	invalid.Lease = 0

	claims := e.store.Claim(e.Context(), []idempotency.Request{completed, invalid, fresh, busy, conflict, notDue, closed})
	want := []idempotency.Status{
		idempotency.StatusCompleted, 0, idempotency.StatusAcquired, idempotency.StatusBusy, idempotency.StatusConflict, idempotency.StatusNotDue, idempotency.StatusClosed,
	}
	for i, c := range claims {
		if c.Status != want[i] || (c.Err != nil) != (want[i] == 0) {
			e.Errorf("item %d answers %v, %v, want %v", i, c.Status, c.Err, want[i])
		}
	}
	if string(claims[0].Result.Data) != "result" || claims[2].Attempt != 1 {
		e.Errorf("result %q, attempt %d", claims[0].Result.Data, claims[2].Attempt)
	}
}

func testKeyTwice(e *env) {
	r := e.request()
	claims := e.store.Claim(e.Context(), []idempotency.Request{r, r, e.sharing(r)})
	for i, want := range []idempotency.Status{idempotency.StatusAcquired, idempotency.StatusBusy, idempotency.StatusBusy} {
		if claims[i].Status != want {
			e.Errorf("item %d answers %v, want %v", i, claims[i].Status, want)
		}
	}
	h := heldBy(r, claims[0])
	errs := e.store.Complete(e.Context(), []idempotency.Completion{{Handle: h}, {Handle: h}})
	if errs[0] != nil || errs[1] != nil {
		e.Errorf("completing twice in one batch: %v", errs)
	}

	h = e.acquire(e.request(), 1)
	errs = e.store.Fail(e.Context(), []idempotency.Failure{{Handle: h}, {Handle: h}})
	if errs[0] != nil || !errors.Is(errs[1], idempotency.ErrClaimLost) {
		e.Errorf("failing twice in one batch: %v", errs)
	}
}

func testMixedEnds(e *env) {
	a, b := e.request(), e.request()
	won, lost := e.acquire(a, 1), e.acquire(b, 1)
	lost.Token++
	unknown := won
	unknown.Key.Value = e.name("unknown")
	check := func(call string, errs []error) {
		e.Helper()
		for i, want := range []error{idempotency.ErrClaimLost, nil, idempotency.ErrClaimLost} {
			if !errors.Is(errs[i], want) {
				e.Errorf("%s: item %d answers %v, want %v", call, i, errs[i], want)
			}
		}
	}
	ctx := e.Context()
	check("extend", e.store.Extend(ctx, []idempotency.Extension{{Handle: lost, Lease: long}, {Handle: won, Lease: long}, {Handle: unknown, Lease: long}}))
	check("fail", e.store.Fail(ctx, []idempotency.Failure{{Handle: lost}, {Handle: won}, {Handle: unknown}}))
	won = e.acquire(a, 2)
	check("abandon", e.store.Abandon(ctx, []idempotency.Abandonment{{Handle: lost}, {Handle: won}, {Handle: unknown}}))
	won = e.acquire(a, 2)
	check("complete", e.store.Complete(ctx, []idempotency.Completion{{Handle: lost}, {Handle: won}, {Handle: unknown}}))
}

func testLargeBatch(e *env) {
	const items = 500
	reqs := make([]idempotency.Request, items)
	for i := range reqs {
		reqs[i] = e.request()
	}
	comps := make([]idempotency.Completion, items)
	for i, c := range e.store.Claim(e.Context(), reqs) {
		if c.Status != idempotency.StatusAcquired {
			e.Fatalf("item %d answers %v, %v", i, c.Status, c.Err)
		}
		comps[i] = idempotency.Completion{Handle: heldBy(reqs[i], c), Result: idempotency.NewResult(fmt.Append(nil, i))}
	}
	for i, err := range e.store.Complete(e.Context(), comps) {
		if err != nil {
			e.Fatalf("item %d: %v", i, err)
		}
	}
	for i, c := range e.store.Claim(e.Context(), reqs) {
		if c.Status != idempotency.StatusCompleted || string(c.Result.Data) != fmt.Sprint(i) {
			e.Fatalf("item %d answers %v with %q", i, c.Status, c.Result.Data)
		}
	}
}
