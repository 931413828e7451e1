package breakermodel

import (
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Breaker is the slow, obviously right breaker: it keeps every call and every probe in plain lists.
type Breaker struct {
	State    breaker.State
	Override breaker.Override
	Until    time.Time // open: when probes may start

	cfg     breaker.Config
	gen     int
	since   time.Time
	opens   int
	events  []event
	probes  map[int]time.Time // by permit
	good    int
	bad     int
	permits map[int]permit
}

type event struct {
	bucket int64
	o      breaker.Outcome
}

type permit struct {
	gen   int
	probe bool
	start time.Time
}

// New returns a closed breaker. The config has its defaults filled in, and no jitter.
func New(cfg breaker.Config) *Breaker {
	return &Breaker{cfg: cfg, probes: map[int]time.Time{}, permits: map[int]permit{}}
}

// Out is how many permits are out.
func (m *Breaker) Out() int { return len(m.permits) }

// Reset closes the breaker and forgets what it counted.
func (m *Breaker) Reset(now time.Time) {
	m.enter(breaker.StateClosed, now)
	m.opens = 0
}

func (m *Breaker) bucket(now time.Time) int64 {
	w := int64(m.cfg.Window) / 10
	n := stamp.Of(now) / w
	if stamp.Of(now)%w < 0 {
		n--
	}
	return n
}

func (m *Breaker) enter(s breaker.State, now time.Time) {
	m.State, m.since, m.events, m.probes, m.good, m.bad = s, now, nil, map[int]time.Time{}, 0, 0
	m.gen++
}

func (m *Breaker) freeProbes(now time.Time) bool {
	n := m.good + m.bad
	for _, start := range m.probes {
		if now.Sub(start) < m.cfg.ProbeLease {
			n++
		}
	}
	return n < m.cfg.Probes
}

// Refuses reports whether a call is refused.
func (m *Breaker) Refuses(now time.Time) bool {
	switch {
	case m.Override == breaker.OverrideOpen:
		return true
	case m.Override == breaker.OverrideClosed, m.State == breaker.StateClosed:
		return false
	case m.State == breaker.StateOpen && now.Before(m.Until), m.State == breaker.StateHalfOpen && !m.freeProbes(now):
		return true
	}
	return false
}

// Admit admits the call of that id, or refuses it.
func (m *Breaker) Admit(id int, now time.Time) (refused bool) {
	if m.Refuses(now) {
		return true
	}
	p := permit{start: now}
	if m.Override == breaker.OverrideNone && m.State != breaker.StateClosed {
		if m.State == breaker.StateOpen {
			m.enter(breaker.StateHalfOpen, now)
		}
		p.probe, m.probes[id] = true, now
	}
	p.gen = m.gen
	m.permits[id] = p
	return false
}

// Done completes it. Later completions do nothing.
func (m *Breaker) Done(id int, now time.Time, o breaker.Outcome) {
	p, ok := m.permits[id]
	if !ok {
		return
	}
	delete(m.permits, id)
	if p.gen != m.gen {
		return
	}
	if o == breaker.OutcomeSuccess && *m.cfg.SlowAfter > 0 && now.Sub(p.start) > *m.cfg.SlowAfter {
		o = breaker.OutcomeSlow
	}
	if p.probe {
		if now.Sub(p.start) >= m.cfg.ProbeLease {
			return
		}
		delete(m.probes, id)
		m.probed(o, now)
		return
	}
	if m.State == breaker.StateClosed && o != breaker.OutcomeIgnored {
		m.events = append(m.events, event{m.bucket(now), o})
		m.evaluate(now)
	}
}

func (m *Breaker) probed(o breaker.Outcome, now time.Time) {
	switch o {
	case breaker.OutcomeSuccess:
		m.good++
	case breaker.OutcomeFailure, breaker.OutcomeSlow:
		m.bad++
	}
	switch {
	case m.good >= m.cfg.ProbesToClose:
		m.enter(breaker.StateClosed, now)
	case m.bad > m.cfg.Probes-m.cfg.ProbesToClose:
		m.opens++
		m.open(now)
	}
}

func (m *Breaker) evaluate(now time.Time) {
	calls, failures, slow := 0, 0, 0
	for _, e := range m.events {
		if e.bucket > m.bucket(now)-10 {
			calls++
			if e.o == breaker.OutcomeFailure {
				failures++
			}
			if e.o == breaker.OutcomeSlow {
				slow++
			}
		}
	}
	if calls >= m.cfg.MinimumCalls && (failures*100 >= *m.cfg.FailurePercent*calls || slow*100 >= *m.cfg.SlowPercent*calls) {
		m.opens = 0
		m.open(now)
	}
}

func (m *Breaker) open(now time.Time) {
	m.enter(breaker.StateOpen, now)
	d := m.cfg.OpenFor
	for range m.opens {
		d = min(2*d, m.cfg.OpenMax)
	}
	m.Until = now.Add(d)
}
