package storetest

import (
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/idempotency"
)

func claimTests() []testCase {
	return []testCase{
		{"Claim/first is acquired as attempt 1", testFirstClaim},
		{"Claim/held is busy and tells how long", testBusy},
		{"Claim/the holder's own redelivery is busy", testOwnRedelivery},
		{"Claim/one of many at once wins", testConcurrentClaims},
		{"Claim/keys of any bytes", testAnyKey},
		{"Claim/invalid requests are refused", testInvalidRequests},
		{"Claim/free again after abandon and failure", testFreeAgain},
		{"Claim/not due until the delay is over", testNotDue},
		{"Get/unknown key", testGetUnknown},
		{"Get/follows the claim", testGetFollows},
		{"Ping/answers", testPing},
	}
}

func testFirstClaim(e *env) {
	r := e.request()
	c := e.wants(r, idempotency.StatusAcquired)
	if c.Attempt != 1 || c.Token == 0 || len(c.History) != 0 {
		e.Errorf("first claim: attempt %d, token %d, history %v", c.Attempt, c.Token, c.History)
	}
	if c.Wait <= 0 || c.Wait > r.Lease || c.Until.IsZero() {
		e.Errorf("first claim lasts %v until %v, want %v", c.Wait, c.Until, r.Lease)
	}
}

func testBusy(e *env) {
	r := e.request()
	first := e.wants(r, idempotency.StatusAcquired)
	r2 := e.sharing(r)
	r2.Owner = "owner-2"
	c := e.wants(r2, idempotency.StatusBusy)
	if !c.Until.Equal(first.Until) || c.Wait <= 0 || c.Wait > long {
		e.Errorf("busy until %v (%v), want %v", c.Until, c.Wait, first.Until)
	}
	if c.Attempt != 0 || c.Token != 0 {
		e.Errorf("busy claim charged attempt %d, token %d", c.Attempt, c.Token)
	}
	e.complete(heldBy(r, first), "", nil)
}

func testOwnRedelivery(e *env) {
	r := e.request()
	h := e.acquire(r, 1)
	e.wants(r, idempotency.StatusBusy)
	e.abandon(h, 0, nil)
	e.acquire(r, 1)
}

func testConcurrentClaims(e *env) {
	r := e.request()
	const callers = 32
	claims := make([]idempotency.Claim, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { claims[i] = e.store.Claim(e.Context(), []idempotency.Request{r})[0] })
	}
	wg.Wait()
	counts := map[idempotency.Status]int{}
	for _, c := range claims {
		if c.Err != nil {
			e.Fatalf("claim: %v", c.Err)
		}
		counts[c.Status]++
	}
	if counts[idempotency.StatusAcquired] != 1 || counts[idempotency.StatusBusy] != callers-1 {
		e.Errorf("%d claims of one key at once: %v, want one acquired and the others busy", callers, counts)
	}
}

func testAnyKey(e *env) {
	suffix := e.name("")
	values := []string{
		"", "\x00", "a\x00b", "a\x00", "a", "\xff\xfe", "ä", "A", strings.Repeat("k", 10<<10), strings.Repeat("k", 10<<10-1) + "\x00", " ", "'\"%_",
	}
	held := map[string]idempotency.Handle{}
	for _, v := range values {
		for _, scope := range []string{"", "storetest", "storetest\x00"} {
			r := e.request()
			r.Key = idempotency.Key{Scope: scope, Value: v + suffix}
			r.Job = v + suffix + scope
			held[scope+"/"+v] = e.acquire(r, 1)
		}
	}
	for name, h := range held {
		e.complete(h, name, nil)
	}
	for name, h := range held {
		rec := e.get(h.Key)
		if rec.Key != h.Key || rec.Job != h.Job || string(rec.Result.Data) != name {
			e.Errorf("key %.20q came back as %.20q with result %.20q", h.Key, rec.Key, rec.Result.Data)
		}
	}
}

func testInvalidRequests(e *env) {
	valid := e.request()
	for name, change := range map[string]func(*idempotency.Request){
		"no job": func(r *idempotency.Request) { r.Job = "" }, "negative run": func(r *idempotency.Request) { r.Run = -1 },
		"no lease": func(r *idempotency.Request) { r.Lease = 0 }, "long owner": func(r *idempotency.Request) { r.Owner = strings.Repeat("o", 201) },
		"negative base": func(r *idempotency.Request) { r.AttemptBase = -1 },
	} {
		r := valid
		change(&r)
		claims := e.store.Claim(e.Context(), []idempotency.Request{r, e.request()})
		if claims[0].Err == nil || claims[0].Status != 0 {
			e.Errorf("%s: answered %v, want an error", name, claims[0].Status)
		}
		if claims[1].Status != idempotency.StatusAcquired {
			e.Errorf("%s: the valid request beside it got %v, %v", name, claims[1].Status, claims[1].Err)
		}
	}
}

func testFreeAgain(e *env) {
	r := e.request()
	e.abandon(e.acquire(r, 1), 0, nil)
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1)}, nil)
	e.complete(e.acquire(r, 2), "done", nil)
	e.wants(r, idempotency.StatusCompleted)
}

func testNotDue(e *env) {
	for name, end := range map[string]func(h idempotency.Handle, delay time.Duration){
		"abandon": func(h idempotency.Handle, delay time.Duration) { e.abandon(h, delay, nil) },
		"fail": func(h idempotency.Handle, delay time.Duration) {
			e.fail(idempotency.Failure{Handle: h, Delay: delay}, nil)
		},
	} {
		r := e.request()
		end(e.acquire(r, 1), long)
		c := e.wants(r, idempotency.StatusNotDue)
		if c.Wait <= 0 || c.Wait > long || c.Until.IsZero() || c.Attempt != 0 || c.Token != 0 {
			e.Errorf("%s: not due for %v until %v, attempt %d", name, c.Wait, c.Until, c.Attempt)
		}
		// The delay is the run's: another job with the same key may run.
		e.abandon(e.acquire(e.sharing(r), 1), 0, nil)

		r = e.request()
		end(e.acquire(r, 1), e.short)
		e.pass(e.short)
		e.wants(r, idempotency.StatusAcquired)
	}
}

func testGetUnknown(e *env) {
	_, err := e.store.Get(e.Context(), idempotency.Key{Scope: "storetest", Value: e.name("unknown")})
	e.answered("get", []error{err}, idempotency.ErrNotFound)
}

func testGetFollows(e *env) {
	r := e.request()
	r.AttemptBase = 2
	c := e.wants(r, idempotency.StatusAcquired)
	rec := e.get(r.Key)
	if rec.State != idempotency.StatusAcquired || rec.Job != r.Job || rec.Run != 0 || rec.Attempt != 3 || rec.Owner != r.Owner ||
		rec.Token != c.Token || !rec.Until.Equal(c.Until) || rec.Closed {
		e.Errorf("held: %+v", rec)
	}
	e.fail(idempotency.Failure{Handle: heldBy(r, c), Delay: long, Attempt: idempotency.Attempt{Number: 3, Error: "boom"}}, nil)
	due := e.wants(r, idempotency.StatusNotDue)
	rec = e.get(r.Key)
	if rec.State != 0 || rec.Attempt != 3 || !rec.Until.Equal(due.Until) || len(rec.History) != 1 || rec.Closed {
		e.Errorf("between attempts: %+v", rec)
	}

	r = e.request()
	e.complete(e.acquire(r, 1), "result", nil)
	rec = e.get(r.Key)
	if rec.State != idempotency.StatusCompleted || string(rec.Result.Data) != "result" || rec.Until.IsZero() || rec.Job != r.Job {
		e.Errorf("completed: %+v", rec)
	}

	r = e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Final: true}, nil)
	if rec = e.get(r.Key); rec.State != 0 || !rec.Closed || rec.Attempt != 1 {
		e.Errorf("closed: %+v", rec)
	}
}

func testPing(e *env) {
	if err := e.store.Ping(e.Context()); err != nil {
		e.Errorf("ping: %v", err)
	}
}
