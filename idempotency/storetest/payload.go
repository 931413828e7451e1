package storetest

import "github.com/caisson-go/caisson/idempotency"

func payloadTests() []testCase {
	return []testCase{
		{"Payload/conflict after completion", testConflictCompleted},
		{"Payload/conflict while it runs", testConflictRunning},
		{"Payload/conflict between attempts, free once closed", testConflictFailed},
		{"Payload/conflict with an expired claim", testConflictExpired},
		{"Payload/other kinds are independent", testOtherScope},
		{"Payload/bytes are compared, not meaning", testKeyOrder},
		{"Payload/conflict touches nothing", testConflictTouchesNothing},
	}
}

// amounts returns two jobs' requests for one key with different payloads, as in field case H3.
func (e *env) amounts() (first, second idempotency.Request) {
	first = e.request()
	first.Key.Value = e.name("ord-7")
	first.Fingerprint = idempotency.FingerprintOf([]byte(`{"amt":10}`))
	second = e.sharing(first)
	second.Fingerprint = idempotency.FingerprintOf([]byte(`{"amt":99}`))
	return first, second
}

func testConflictCompleted(e *env) {
	first, second := e.amounts()
	e.complete(e.acquire(first, 1), "paid 10", nil)
	if c := e.wants(second, idempotency.StatusConflict); len(c.Result.Data) != 0 {
		e.Errorf("conflict hands out %q", c.Result.Data)
	}
	if c := e.wants(first, idempotency.StatusCompleted); string(c.Result.Data) != "paid 10" {
		e.Errorf("first result became %q", c.Result.Data)
	}
}

func testConflictRunning(e *env) {
	first, second := e.amounts()
	h := e.acquire(first, 1)
	e.wants(second, idempotency.StatusConflict)
	e.extend(h, long, nil)
	e.complete(h, "paid 10", nil)
}

func testConflictFailed(e *env) {
	first, second := e.amounts()
	e.fail(idempotency.Failure{Handle: e.acquire(first, 1)}, nil)
	e.wants(second, idempotency.StatusConflict)
	e.abandon(e.acquire(first, 2), 0, nil)
	e.wants(second, idempotency.StatusConflict)
	e.fail(idempotency.Failure{Handle: e.acquire(first, 2), Final: true}, nil)
	h := e.acquire(second, 1)
	e.wants(first, idempotency.StatusClosed)
	e.complete(h, "paid 99", nil)
	e.wants(second, idempotency.StatusCompleted)
}

func testConflictExpired(e *env) {
	first, second := e.amounts()
	first.Lease = e.short
	h := e.acquire(first, 1)
	e.pass(2 * e.short)
	e.wants(second, idempotency.StatusConflict)
	e.complete(h, "paid 10", nil)
}

func testOtherScope(e *env) {
	first, second := e.amounts()
	second.Key.Scope = "another kind"
	a, b := e.acquire(first, 1), e.acquire(second, 1)
	e.complete(a, "a", nil)
	e.complete(b, "b", nil)
	if c := e.wants(second, idempotency.StatusCompleted); string(c.Result.Data) != "b" {
		e.Errorf("result %q, want the other kind's own", c.Result.Data)
	}
}

func testKeyOrder(e *env) {
	first, second := e.amounts()
	first.Fingerprint = idempotency.FingerprintOf([]byte(`{"a":1,"b":2}`))
	second.Fingerprint = idempotency.FingerprintOf([]byte(`{"b":2,"a":1}`))
	e.acquire(first, 1)
	e.wants(second, idempotency.StatusConflict)
}

func testConflictTouchesNothing(e *env) {
	first, second := e.amounts()
	h := e.acquire(first, 1)
	before := e.get(first.Key)
	for range 3 {
		e.wants(second, idempotency.StatusConflict)
	}
	after := e.get(first.Key)
	if before.Token != after.Token || before.Job != after.Job || before.Attempt != after.Attempt || !before.Until.Equal(after.Until) {
		e.Errorf("a conflict changed the record from %+v to %+v", before, after)
	}
	// Nor does it charge or close the refused job: with the key free again, it starts at attempt 1.
	e.fail(idempotency.Failure{Handle: h, Final: true}, nil)
	e.acquire(second, 1)
}
