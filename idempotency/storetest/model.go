package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/idempotency"
)

func modelTests() []testCase {
	return []testCase{{"Model/agrees with the reference", testModel}}
}

func testModel(e *env) {
	// The wrapper hides T.Deadline, which panics in a bubble.
	rapid.Check(struct{ testing.TB }{e.T}, func(t *rapid.T) {
		m := &model{env: e, ref: newReference(), prefix: e.name("model")}
		t.Repeat(map[string]func(*rapid.T){
			"claim": m.claim, "batch": m.batch, "extend": m.extendOne, "complete": m.completeOne, "abandon": m.abandonOne, "fail": m.failOne,
			"expire": m.expireSome, "": m.check,
		})
	})
}

// model drives store and reference side by side. Every duration is either long, or short and waited for at once: so no deadline is
// ever near, and the test holds on a clock that nobody can stop.
type model struct {
	*env
	ref    *reference
	prefix string
	held   []modelHeld
}

// modelHeld is a claim that was acquired once and the reference's token of it.
type modelHeld struct {
	idempotency.Handle
	claim int
}

// duration draws long or short. The caller calls settle after the operation.
func (m *model) duration(t *rapid.T, name string) time.Duration {
	return rapid.SampledFrom([]time.Duration{long, m.short}).Draw(t, name)
}

func (m *model) settle(ds ...time.Duration) {
	for _, d := range ds {
		if d == m.short {
			m.pass(m.short)
			m.ref.now += m.short
			return
		}
	}
}

func (m *model) keys() []idempotency.Key {
	var keys []idempotency.Key
	for _, scope := range []string{"a", "b"} {
		for _, value := range []string{"job-0", "job-1", "shared"} {
			keys = append(keys, idempotency.Key{Scope: scope, Value: m.prefix + value})
		}
	}
	return keys
}

func (m *model) request(t *rapid.T) idempotency.Request {
	return idempotency.Request{
		Key: rapid.SampledFrom(m.keys()).Draw(t, "key"),
		Job: m.prefix + rapid.SampledFrom([]string{"job-0", "job-1", "job-2"}).Draw(t, "job"),
		Run: rapid.IntRange(0, 1).Draw(t, "run"), AttemptBase: rapid.SampledFrom([]int{0, 3}).Draw(t, "base"),
		Fingerprint: idempotency.FingerprintOf([]byte(rapid.SampledFrom([]string{"p", "p", "p", "q"}).Draw(t, "payload"))),
		Owner:       "model", Lease: m.duration(t, "lease"),
	}
}

func (m *model) claim(t *rapid.T) { m.claimAll(t, []idempotency.Request{m.request(t)}) }

func (m *model) batch(t *rapid.T) {
	reqs := make([]idempotency.Request, rapid.IntRange(2, 4).Draw(t, "size"))
	for i := range reqs {
		reqs[i] = m.request(t)
	}
	m.claimAll(t, reqs)
}

func (m *model) claimAll(t *rapid.T, reqs []idempotency.Request) {
	leases := make([]time.Duration, len(reqs))
	for i, c := range m.store.Claim(m.Context(), reqs) {
		leases[i] = reqs[i].Lease
		if c.Err != nil {
			t.Fatalf("claim: %v", c.Err)
		}
		status, attempt, claim := m.ref.claim(reqs[i])
		if c.Status != status || c.Attempt != attempt {
			t.Fatalf("claim of %+v answers %v, attempt %d, want %v, %d", reqs[i], c.Status, c.Attempt, status, attempt)
		}
		if status != idempotency.StatusAcquired {
			continue
		}
		for _, h := range m.held {
			if h.Key == reqs[i].Key && h.Token >= c.Token {
				t.Fatalf("token %d after %d for one key", c.Token, h.Token)
			}
		}
		m.held = append(m.held, modelHeld{heldBy(reqs[i], c), claim})
	}
	m.settle(leases...)
}

// draw picks a claim acquired at some time; most are lost. It skips the operation if there is none.
func (m *model) draw(t *rapid.T) modelHeld {
	if len(m.held) == 0 {
		t.Skip("nothing acquired yet")
	}
	return m.held[len(m.held)-1-min(len(m.held)-1, rapid.IntRange(0, 5).Draw(t, "held"))]
}

func agree(t *rapid.T, call string, errs []error, ok bool) {
	if ok != (errs[0] == nil) || !ok && !errors.Is(errs[0], idempotency.ErrClaimLost) {
		t.Fatalf("%s answers %v, the reference says held: %v", call, errs[0], ok)
	}
}

func (m *model) extendOne(t *rapid.T) {
	h, lease := m.draw(t), m.duration(t, "lease")
	errs := m.store.Extend(m.Context(), []idempotency.Extension{{Handle: h.Handle, Lease: lease}})
	agree(t, "extend", errs, m.ref.extend(h.Handle, h.claim, lease))
	m.settle(lease)
}

func (m *model) completeOne(t *rapid.T) {
	h, retention := m.draw(t), m.duration(t, "retention")
	result := fmt.Sprintf("result of %d", h.Token)
	errs := m.store.Complete(m.Context(), []idempotency.Completion{
		{Handle: h.Handle, Result: idempotency.NewResult([]byte(result)), Retention: retention},
	})
	agree(t, "complete", errs, m.ref.complete(h.Handle, h.claim, result, retention))
	m.settle(retention)
}

func (m *model) abandonOne(t *rapid.T) {
	h, delay := m.draw(t), m.duration(t, "delay")
	errs := m.store.Abandon(m.Context(), []idempotency.Abandonment{{Handle: h.Handle, Delay: delay}})
	agree(t, "abandon", errs, m.ref.abandon(h.Handle, h.claim, delay))
	m.settle(delay)
}

func (m *model) failOne(t *rapid.T) {
	h, delay, retention := m.draw(t), m.duration(t, "delay"), m.duration(t, "retention")
	final := rapid.IntRange(0, 3).Draw(t, "final") == 0
	errs := m.store.Fail(m.Context(), []idempotency.Failure{{Handle: h.Handle, Delay: delay, Final: final, Retention: retention}})
	agree(t, "fail", errs, m.ref.fail(h.Handle, h.claim, delay, final, retention))
	m.settle(delay, retention)
}

func (m *model) expireSome(t *rapid.T) {
	m.expireAll()
	m.ref.expire()
}

// check compares all records, after each step.
func (m *model) check(t *rapid.T) {
	for _, key := range m.keys() {
		rec, err := m.store.Get(m.Context(), key)
		want := m.ref.keys[key]
		if want == nil {
			if !errors.Is(err, idempotency.ErrNotFound) {
				t.Fatalf("get of unknown key %v: %+v, %v", key, rec, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("get %v: %v", key, err)
		}
		run := m.ref.runs[want.holder]
		if run == nil {
			run = &refRun{}
		}
		result := ""
		if want.state == idempotency.StatusCompleted {
			result = want.result
		}
		if rec.State != want.state || (refRunID{rec.Job, rec.Run}) != want.holder || rec.Attempt != run.attempt || rec.Closed != run.closed ||
			len(rec.History) != min(run.failures, idempotency.MaxHistory) || string(rec.Result.Data) != result {
			t.Fatalf("record %+v, want %+v with ledger %+v", rec, want, run)
		}
	}
}
