package pools

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelBreaker is the slow, obviously right breaker: it keeps every call and every probe in plain lists.
type modelBreaker struct {
	cfg      BreakerConfig
	state    State
	override Override
	gen      int
	since    time.Time
	until    time.Time
	opens    int
	events   []modelEvent
	probes   map[int]time.Time // by permit
	good     int
	bad      int
	permits  map[int]modelPermit
}

type modelEvent struct {
	bucket int64
	o      Outcome
}

type modelPermit struct {
	gen   int
	probe bool
	start time.Time
}

func (m *modelBreaker) bucket(now time.Time) int64 {
	w := int64(m.cfg.Window) / 10
	n := stamp(now) / w
	if stamp(now)%w < 0 {
		n--
	}
	return n
}

func (m *modelBreaker) enter(s State, now time.Time) {
	m.state, m.since, m.events, m.probes, m.good, m.bad = s, now, nil, map[int]time.Time{}, 0, 0
	m.gen++
}

func (m *modelBreaker) freeProbes(now time.Time) bool {
	n := m.good + m.bad
	for _, start := range m.probes {
		if now.Sub(start) < m.cfg.ProbeLease {
			n++
		}
	}
	return n < m.cfg.Probes
}

func (m *modelBreaker) reason(now time.Time) Reason {
	switch {
	case m.override == OverrideOpen:
		return ReasonForcedOpen
	case m.override == OverrideClosed, m.state == StateClosed:
		return ReasonOK
	case m.state == StateOpen && now.Before(m.until), m.state == StateHalfOpen && !m.freeProbes(now):
		return ReasonBreakerOpen
	}
	return ReasonOK
}

func (m *modelBreaker) admit(id int, now time.Time) Reason {
	if r := m.reason(now); r != ReasonOK {
		return r
	}
	p := modelPermit{start: now}
	if m.override == OverrideNone && m.state != StateClosed {
		if m.state == StateOpen {
			m.enter(StateHalfOpen, now)
		}
		p.probe, m.probes[id] = true, now
	}
	p.gen = m.gen
	m.permits[id] = p
	return ReasonOK
}

func (m *modelBreaker) done(id int, now time.Time, o Outcome) {
	p, ok := m.permits[id]
	if !ok {
		return
	}
	delete(m.permits, id)
	if p.gen != m.gen {
		return
	}
	if o == OutcomeSuccess && m.cfg.SlowAfter > 0 && now.Sub(p.start) > m.cfg.SlowAfter {
		o = OutcomeSlow
	}
	if p.probe {
		if now.Sub(p.start) >= m.cfg.ProbeLease {
			return
		}
		delete(m.probes, id)
		m.probed(o, now)
		return
	}
	if m.state == StateClosed && o != OutcomeIgnored {
		m.events = append(m.events, modelEvent{m.bucket(now), o})
		m.evaluate(now)
	}
}

func (m *modelBreaker) probed(o Outcome, now time.Time) {
	switch o {
	case OutcomeSuccess:
		m.good++
	case OutcomeFailure, OutcomeSlow:
		m.bad++
	}
	switch {
	case m.good >= m.cfg.ProbesToClose:
		m.enter(StateClosed, now)
	case m.bad > m.cfg.Probes-m.cfg.ProbesToClose:
		m.opens++
		m.open(now)
	}
}

func (m *modelBreaker) evaluate(now time.Time) {
	calls, failures, slow := 0, 0, 0
	for _, e := range m.events {
		if e.bucket > m.bucket(now)-10 {
			calls++
			if e.o == OutcomeFailure {
				failures++
			}
			if e.o == OutcomeSlow {
				slow++
			}
		}
	}
	if calls >= m.cfg.MinimumCalls && (failures*100 >= m.cfg.FailurePercent*calls || slow*100 >= m.cfg.SlowPercent*calls) {
		m.opens = 0
		m.open(now)
	}
}

func (m *modelBreaker) open(now time.Time) {
	m.enter(StateOpen, now)
	d := m.cfg.OpenFor
	for range m.opens {
		d = min(2*d, m.cfg.OpenMax)
	}
	m.until = now.Add(d)
}

func TestBreakerMatchesTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := BreakerConfig{
			FailurePercent: rapid.IntRange(1, 100).Draw(t, "failure percent"),
			SlowPercent:    rapid.IntRange(1, 100).Draw(t, "slow percent"),
			SlowAfter:      time.Duration(rapid.IntRange(0, 3).Draw(t, "slow after")) * time.Second,
			Window:         time.Duration(rapid.IntRange(1, 30).Draw(t, "window")) * time.Second,
			MinimumCalls:   rapid.IntRange(1, 8).Draw(t, "minimum"),
			OpenFor:        5 * time.Second, OpenGrowth: 2, OpenMax: 17 * time.Second, OpenJitter: -1,
			Probes:     rapid.IntRange(1, 4).Draw(t, "probes"),
			ProbeLease: time.Duration(rapid.IntRange(1, 10).Draw(t, "lease")) * time.Second,
		}
		cfg.ProbesToClose = rapid.IntRange(1, cfg.Probes).Draw(t, "to close")
		b, err := NewBreaker(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &modelBreaker{cfg: cfg, probes: map[int]time.Time{}, permits: map[int]modelPermit{}}
		permits, next, now := map[int]*Permit{}, 0, t0
		ids := func() []int {
			list := []int{}
			for id := range next {
				if permits[id] != nil {
					list = append(list, id)
				}
			}
			return list
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "quarter seconds")) * 250 * time.Millisecond)
			},
			"admit": func(t *rapid.T) {
				peek := b.Peek(now)
				p, v := b.Admit(now)
				if want := m.admit(next, now); v.Reason != want || peek != v || v.OK() != (v.Wait == 0) {
					t.Fatalf("Admit = %+v, Peek = %+v, want %v", v, peek, want)
				}
				if v.OK() {
					permits[next] = &p
				}
				next++
			},
			"done": func(t *rapid.T) { // permits stay in the map, so that some are completed twice
				if list := ids(); len(list) > 0 {
					id := rapid.SampledFrom(list).Draw(t, "permit")
					o := rapid.SampledFrom([]Outcome{OutcomeSuccess, OutcomeSuccess, OutcomeFailure, OutcomeFailure, OutcomeSlow, OutcomeIgnored}).Draw(t, "outcome")
					permits[id].Done(now, o)
					m.done(id, now, o)
				}
			},
			"force": func(t *rapid.T) {
				m.override = rapid.SampledFrom([]Override{OverrideNone, OverrideNone, OverrideOpen, OverrideClosed}).Draw(t, "override")
				b.Force(now, m.override)
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					b.Reset(now)
					m.enter(StateClosed, now)
					m.opens = 0
				}
			},
			"": func(t *rapid.T) {
				if got := b.State(); got != m.state {
					t.Fatalf("state %v, want %v", got, m.state)
				}
				if got := b.Snapshot(now).InUse; got != len(m.permits) {
					t.Fatalf("%d permits out, want %d", got, len(m.permits))
				}
			},
		})
	})
}
