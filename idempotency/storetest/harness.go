package storetest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/testkit/storesuite"
)

// Harness connects the suite to a store.
type Harness struct {
	// Open returns a store that is closed by t.Cleanup. It may hold records of other tests: the suite uses fresh names. It is
	// called inside a synctest bubble unless Pass is set. Required.
	Open func(t *testing.T) idempotency.Store
	// Pass lets at least d go by on the store's clock. Nil means that the store reads time.Now: each test then runs in a
	// synctest bubble, where hours pass at once. For a server's clock use time.Sleep.
	Pass func(d time.Duration)
	// Finder says that the store is an [idempotency.Finder]. It holds for all harnesses of Fresh as well.
	Finder bool
	// Short is a lease or retention that a test waits for. Zero means 10 s, or 200 ms if Pass is set.
	Short time.Duration
	// Whole says that Expire removes whole generations of records, and so more than its limit at once.
	Whole bool
	// Fresh returns the harness of a group of cases, with tables and a clock that no other group shares. Groups then run in parallel. Nil means that
	// all use this one, one after the other.
	Fresh func(t *testing.T) Harness
}

func (h Harness) withDefaults() Harness {
	if h.Short == 0 {
		h.Short = 10 * time.Second
		if h.Pass != nil {
			h.Short = 200 * time.Millisecond
		}
	}
	return h
}

// Run runs the suite against the store of h.
func Run(t *testing.T, h Harness) {
	h = h.withDefaults()
	cases := slices.Concat(claimTests(), fencingTests(), ledgerTests(), payloadTests(), resultTests(), retentionTests(), batchTests(), modelTests(), h.finderTests())
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	storesuite.Run(t, names, h.Fresh != nil, func(t *testing.T) func(*testing.T, int) {
		own := h
		if h.Fresh != nil {
			own = h.Fresh(t).withDefaults()
		}
		return func(t *testing.T, i int) { own.run(t, cases[i].test) }
	})
}

type testCase struct {
	name string
	test func(*env)
}

func (h Harness) run(t *testing.T, test func(*env)) {
	body := func(t *testing.T) {
		e := &env{T: t, store: h.Open(t), short: h.Short, pass: h.Pass, whole: h.Whole}
		if e.pass == nil {
			e.pass = time.Sleep
		}
		test(e)
	}
	if h.Pass != nil {
		body(t)
		return
	}
	synctest.Test(t, body)
}

// long is a lease or delay that never ends during a test.
const long = time.Hour

// env is one test's store and the ways to use it.
type env struct {
	*testing.T
	store idempotency.Store
	short time.Duration
	pass  func(time.Duration)
	whole bool
}

// name returns a name that no other test uses.
func (e *env) name(prefix string) string {
	return storesuite.Name(prefix)
}

// request asks for the key that is a fresh job's own id: the common case.
func (e *env) request() idempotency.Request {
	job := e.name("job")
	return idempotency.Request{
		Key: idempotency.Key{Scope: "storetest", Value: job}, Job: job,
		Fingerprint: idempotency.FingerprintOf([]byte(job)), Owner: "owner-1", Lease: long,
	}
}

// sharing returns a request of another fresh job for the same key and payload.
func (e *env) sharing(r idempotency.Request) idempotency.Request {
	r.Job = e.name("other")
	return r
}

func (e *env) claim(r idempotency.Request) idempotency.Claim {
	e.Helper()
	claims := e.store.Claim(e.Context(), []idempotency.Request{r})
	if len(claims) != 1 {
		e.Fatalf("one request got %d answers", len(claims))
	}
	if claims[0].Err != nil {
		e.Fatalf("claim: %v", claims[0].Err)
	}
	return claims[0]
}

// wants claims r and fails unless the answer is status.
func (e *env) wants(r idempotency.Request, status idempotency.Status) idempotency.Claim {
	e.Helper()
	c := e.claim(r)
	if c.Status != status {
		e.Fatalf("claim of job %q run %d answers %v (attempt %d), want %v", r.Job, r.Run, c.Status, c.Attempt, status)
	}
	return c
}

// acquire claims r, fails unless it is acquired as the given attempt, and returns the claim held.
func (e *env) acquire(r idempotency.Request, attempt int) idempotency.Handle {
	e.Helper()
	c := e.wants(r, idempotency.StatusAcquired)
	if c.Attempt != attempt {
		e.Fatalf("claim of job %q run %d charged attempt %d, want %d", r.Job, r.Run, c.Attempt, attempt)
	}
	return heldBy(r, c)
}

func heldBy(r idempotency.Request, c idempotency.Claim) idempotency.Handle {
	return idempotency.Handle{Key: r.Key, Job: r.Job, Run: r.Run, Token: c.Token}
}

// The ends of a claim. Each fails unless the store answers with want, by errors.Is.

func (e *env) extend(h idempotency.Handle, lease time.Duration, want error) {
	e.Helper()
	e.answered("extend", e.store.Extend(e.Context(), []idempotency.Extension{{Handle: h, Lease: lease}}), want)
}

func (e *env) complete(h idempotency.Handle, data string, want error) {
	e.Helper()
	c := idempotency.Completion{Handle: h, Result: idempotency.NewResult([]byte(data))}
	e.answered("complete", e.store.Complete(e.Context(), []idempotency.Completion{c}), want)
}

func (e *env) abandon(h idempotency.Handle, delay time.Duration, want error) {
	e.Helper()
	e.answered("abandon", e.store.Abandon(e.Context(), []idempotency.Abandonment{{Handle: h, Delay: delay}}), want)
}

func (e *env) fail(f idempotency.Failure, want error) {
	e.Helper()
	e.answered("fail", e.store.Fail(e.Context(), []idempotency.Failure{f}), want)
}

func (e *env) answered(call string, errs []error, want error) {
	e.Helper()
	if len(errs) != 1 {
		e.Fatalf("%s: one item got %d answers", call, len(errs))
	}
	if !errors.Is(errs[0], want) {
		e.Fatalf("%s answers %v, want %v", call, errs[0], want)
	}
}

func (e *env) get(key idempotency.Key) idempotency.Record {
	e.Helper()
	rec, err := e.store.Get(e.Context(), key)
	if err != nil {
		e.Fatalf("get: %v", err)
	}
	return rec
}

// expireAll removes everything that is due and returns how much it was.
func (e *env) expireAll() int {
	e.Helper()
	total := 0
	for {
		n, err := e.store.Expire(e.Context(), 100)
		if err != nil {
			e.Fatalf("expire: %v", err)
		}
		total += n
		if n == 0 {
			return total
		}
	}
}
