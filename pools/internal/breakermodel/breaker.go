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
	Places   int       // how many calls can be in flight; 0 if nobody knows

	cfg     breaker.Config
	gen     int
	since   time.Time
	opens   int
	events  []event
	probes  map[int]time.Time // by permit
	good    int
	bad     int
	permits map[int]permit
	calls   []*call // since it closed, in the order of their starts
}

type call struct {
	done    bool
	outcome breaker.Outcome
}

type event struct {
	bucket int64
	o      breaker.Outcome
}

type permit struct {
	gen   int
	probe bool
	start time.Time
	call  *call // nil unless the breaker was closed
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
	m.calls = nil
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
	case m.Override == breaker.OverrideClosed:
		return false
	case m.State == breaker.StateClosed:
		failed := len(m.unanswered())
		return m.Places > 0 && len(m.permits) > 0 && failed > 0 && failed+len(m.permits) >= max(8, 2*m.Places)
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
	if m.State == breaker.StateClosed {
		p.call = &call{}
		m.calls = append(m.calls, p.call)
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
	if m.State != breaker.StateClosed {
		return
	}
	p.call.done, p.call.outcome = true, o
	if o != breaker.OutcomeIgnored {
		m.events = append(m.events, event{m.bucket(now), o})
		m.evaluate(now)
	}
	if m.State == breaker.StateClosed && m.longestRun() >= m.enough() {
		m.opens = 0
		m.open(now)
	}
}

// enough is how many failures in a row open it.
func (m *Breaker) enough() int {
	if m.Places > 0 && m.Places <= 4 {
		return 8
	}
	return 10
}

// tail returns the calls that started after the last one that was answered, without those that were ignored.
func (m *Breaker) tail() (list []*call) {
	for _, c := range m.calls {
		switch {
		case c.done && c.outcome == breaker.OutcomeIgnored:
		case c.done && c.outcome != breaker.OutcomeFailure:
			list = nil
		default:
			list = append(list, c)
		}
	}
	return list
}

// unanswered returns those of the tail that have failed.
func (m *Breaker) unanswered() (list []*call) {
	for _, c := range m.tail() {
		if c.done {
			list = append(list, c)
		}
	}
	return list
}

// longestRun is the longest row of failures in the tail without a call in flight between them.
func (m *Breaker) longestRun() (longest int) {
	run := 0
	for _, c := range m.tail() {
		if run++; !c.done {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// Outcomes are what calls to a destination end in that is well, or sick.
func Outcomes(sick bool) []breaker.Outcome {
	if sick {
		return []breaker.Outcome{
			breaker.OutcomeFailure, breaker.OutcomeFailure, breaker.OutcomeFailure, breaker.OutcomeFailure, breaker.OutcomeFailure,
			breaker.OutcomeFailure, breaker.OutcomeFailure, breaker.OutcomeFailure, breaker.OutcomeIgnored,
		}
	}
	return []breaker.Outcome{
		breaker.OutcomeSuccess, breaker.OutcomeSuccess, breaker.OutcomeFailure, breaker.OutcomeFailure, breaker.OutcomeSlow,
		breaker.OutcomeIgnored,
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
	if calls < m.cfg.MinimumCalls {
		return
	}
	calls += len(m.tail()) - len(m.unanswered()) // those in flight that started after the last answered one
	if failures*100 >= *m.cfg.FailurePercent*calls || slow*100 >= *m.cfg.SlowPercent*calls {
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
