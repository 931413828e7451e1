package storetest

import (
	"time"

	"github.com/caisson-go/caisson/idempotency"
)

// reference is the slow, obviously right store of the model test: two maps and a clock that the test moves. Tokens are left out:
// the test compares them among themselves.
type reference struct {
	now    time.Duration
	claims int // counts the owners of all keys
	keys   map[idempotency.Key]*refKey
	runs   map[refRunID]*refRun
}

type refRunID struct {
	job string
	run int
}

type refKey struct {
	state       idempotency.Status
	bound       bool // fingerprint is the payload that the key belongs to
	fingerprint idempotency.Fingerprint
	holder      refRunID
	claim       int // the model's token
	until       time.Duration
	result      string
	expires     time.Duration // 0 means never
}

type refRun struct {
	attempt   int
	notBefore time.Duration
	failures  int
	closed    bool
	expires   time.Duration // 0 means never
}

func newReference() *reference {
	return &reference{now: 1, keys: map[idempotency.Key]*refKey{}, runs: map[refRunID]*refRun{}}
}

// claim returns the status and, if acquired, the attempt and the model's token.
func (m *reference) claim(r idempotency.Request) (status idempotency.Status, attempt, claim int) {
	id := refRunID{r.Job, r.Run}
	k, run := m.keys[r.Key], m.runs[id]
	other := k != nil && k.bound && k.fingerprint != r.Fingerprint
	switch {
	case k != nil && k.state == idempotency.StatusCompleted && !other:
		if run != nil && run.expires == 0 {
			run.expires = k.expires
		}
		return idempotency.StatusCompleted, 0, 0
	case run != nil && run.closed:
		return idempotency.StatusClosed, 0, 0
	case other:
		return idempotency.StatusConflict, 0, 0
	case k != nil && k.state == idempotency.StatusAcquired && k.until > m.now:
		return idempotency.StatusBusy, 0, 0
	case run != nil && run.notBefore > m.now:
		return idempotency.StatusNotDue, 0, 0
	}
	if k == nil {
		k = &refKey{}
		m.keys[r.Key] = k
	}
	if run == nil {
		run = &refRun{attempt: r.AttemptBase}
		m.runs[id] = run
	}
	m.claims++
	*k = refKey{
		state: idempotency.StatusAcquired, bound: true, fingerprint: r.Fingerprint, holder: id, claim: m.claims, until: m.now + r.Lease,
	}
	run.attempt++
	run.expires = 0
	return idempotency.StatusAcquired, run.attempt, k.claim
}

// heldKey returns the key that h still holds, or nil.
func (m *reference) heldKey(h idempotency.Handle, claim int) *refKey {
	k := m.keys[h.Key]
	if k == nil || k.state != idempotency.StatusAcquired || k.claim != claim || k.holder != (refRunID{h.Job, h.Run}) {
		return nil
	}
	return k
}

// betweenKey returns the key whose last claim h was, if that failed or was abandoned and its run is not given up, or nil.
func (m *reference) betweenKey(h idempotency.Handle, claim int) *refKey {
	k := m.keys[h.Key]
	if k == nil || k.state != 0 || k.claim != claim || k.holder != (refRunID{h.Job, h.Run}) {
		return nil
	}
	if run := m.runs[k.holder]; run != nil && run.closed {
		return nil
	}
	return k
}

func (m *reference) extend(h idempotency.Handle, claim int, lease time.Duration) bool {
	k := m.heldKey(h, claim)
	if k == nil {
		return false
	}
	k.until = m.now + lease
	return true
}

func (m *reference) complete(h idempotency.Handle, claim int, result string, retention time.Duration) bool {
	if k := m.keys[h.Key]; k != nil && k.state == idempotency.StatusCompleted && k.claim == claim && k.holder == (refRunID{h.Job, h.Run}) {
		return true
	}
	k := m.heldKey(h, claim)
	if k == nil {
		k = m.betweenKey(h, claim)
	}
	if k == nil {
		return false
	}
	k.state, k.result, k.expires = idempotency.StatusCompleted, result, m.now+retention
	if run := m.runs[k.holder]; run != nil {
		run.expires = k.expires
	}
	return true
}

func (m *reference) abandon(h idempotency.Handle, claim int, delay time.Duration) bool {
	k := m.heldKey(h, claim)
	if k == nil {
		return false
	}
	k.state = 0
	if run := m.runs[k.holder]; run != nil {
		run.attempt = max(0, run.attempt-1)
		run.notBefore = m.now + delay
	}
	return true
}

func (m *reference) fail(h idempotency.Handle, claim int, delay time.Duration, final bool, retention time.Duration) bool {
	k := m.heldKey(h, claim)
	if k == nil {
		return false
	}
	run := m.runs[k.holder]
	if run == nil {
		run = &refRun{}
		m.runs[k.holder] = run
	}
	run.failures++
	k.state = 0
	if final {
		k.bound, k.expires = false, m.now+retention
		run.closed, run.expires = true, k.expires
		return true
	}
	run.notBefore = m.now + delay
	return true
}

func (m *reference) expire() {
	for key, k := range m.keys {
		if k.expires != 0 && k.expires <= m.now {
			delete(m.keys, key)
		}
	}
	for id, run := range m.runs {
		if run.expires != 0 && run.expires <= m.now {
			delete(m.runs, id)
		}
	}
}
