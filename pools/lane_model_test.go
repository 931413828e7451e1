package pools

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
)

// laneModel knows of each destination only what is beyond doubt: that it is slow, or that it is not.
type laneModel struct {
	r     *Destinations
	cfg   DestinationsConfig
	now   time.Time
	dests map[string]*lanePast
	out   []*laneCall
}

type lanePast struct {
	quick, late int       // calls that ended within the threshold, and beyond it, since the lane is on
	began       time.Time // the last of any
	ended       time.Time
}

type laneCall struct {
	p     Permit
	name  string
	start time.Time
	slow  bool // the destination was beyond doubt slow when it began
}

const laneOver = time.Second

func (m *laneModel) oldest(name string) (age time.Duration) {
	for _, c := range m.out {
		if c.name == name {
			age = max(age, m.now.Sub(c.start))
		}
	}
	return age
}

func (m *laneModel) past(name string) *lanePast {
	if _, known := m.r.Lookup(name, m.now); m.dests[name] == nil || !known {
		m.dests[name] = &lanePast{}
	}
	return m.dests[name]
}

func (m *laneModel) surelyQuick(name string) bool {
	p := m.past(name)
	return p.quick > 0 && p.late == 0 && m.oldest(name) <= laneOver
}

func (m *laneModel) surelySlow(name string) bool {
	p, flying := m.past(name), m.oldest(name) > 0
	return flying && m.now.Sub(p.began) > laneOver+5*time.Millisecond ||
		p.late > 0 && p.quick == 0 && (flying || m.now.Sub(p.ended) < (laneProbation-1)*laneOver)
}

func TestSlowLaneProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &laneModel{now: t0, dests: map[string]*lanePast{}, cfg: DestinationsConfig{
			SlowLane: SlowLaneConfig{Slots: 2, Over: laneOver}, IdleAfter: time.Minute,
			Default: DestinationConfig{Concurrency: new(4), Breaker: breaker.Config{FailurePercent: new(0), SlowPercent: new(0)}},
		}}
		var err error
		if m.r, err = NewDestinations(m.cfg); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait":      m.wait,
			"admit":     m.admit,
			"and more":  m.admit,
			"done":      m.done,
			"cancel":    m.cancel,
			"configure": m.configure,
			"set":       m.set,
			"reset":     m.reset,
			"evict":     func(*rapid.T) { m.r.Snapshot(m.now) },
			"":          m.check,
		})
		for _, c := range m.out {
			c.p.Done(m.now, breaker.OutcomeSuccess)
		}
		if in := m.r.SlowLane().InUse; in != 0 {
			t.Fatalf("%d slots are lost", in)
		}
	})
}

func (m *laneModel) pick(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "destination")
}

func (m *laneModel) wait(t *rapid.T) {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{
		0, 10 * time.Millisecond, laneOver / 2, laneOver, 3 * laneOver, 40 * laneOver, 2 * time.Minute,
	}).Draw(t, "wait"))
}

func (m *laneModel) admit(t *rapid.T) {
	name := m.pick(t)
	quick, slow := m.surelyQuick(name), m.surelySlow(name)
	peek := m.r.Peek(m.now, Request{Destination: name})
	p, v := m.r.Admit(m.now, Request{Destination: name})
	if peek != v {
		t.Fatalf("Peek = %+v, Admit = %+v", peek, v)
	}
	if quick && v.Reason == ReasonSlowLaneFull {
		t.Fatalf("%s was refused and is not slow", name)
	}
	if !v.OK() {
		return
	}
	m.past(name).began = m.now
	m.out = append(m.out, &laneCall{p: p, name: name, start: m.now, slow: slow && m.cfg.SlowLane.Slots > 0})
	lane, held := m.r.SlowLane(), 0
	for _, c := range m.out {
		if c.slow && m.surelySlow(c.name) {
			held++
		}
	}
	if slow && lane.Slots > 0 && held > lane.Slots {
		t.Fatalf("%d calls to slow destinations at once, %+v", held, lane)
	}
	if slow && lane.Slots > 0 && lane.InUse > lane.Slots {
		t.Fatalf("a slow destination was let into a lane that was full: %+v", lane)
	}
}

func (m *laneModel) take(t *rapid.T) *laneCall {
	if len(m.out) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(m.out)-1).Draw(t, "call")
	c := m.out[i]
	m.out = append(m.out[:i:i], m.out[i+1:]...)
	return c
}

func (m *laneModel) done(t *rapid.T) {
	c := m.take(t)
	if c == nil {
		return
	}
	c.p.Done(m.now, rapid.SampledFrom([]breaker.Outcome{breaker.OutcomeSuccess, breaker.OutcomeFailure, breaker.OutcomeIgnored, breaker.OutcomeSlow}).Draw(t, "outcome"))
	c.p.Done(m.now, breaker.OutcomeSuccess)
	c.p.Cancel(m.now)
	past := m.past(c.name)
	past.ended = m.now
	switch took := m.now.Sub(c.start); {
	case m.cfg.SlowLane.Slots == 0:
	case took > laneOver:
		past.late++
	default:
		past.quick++
	}
}

func (m *laneModel) cancel(t *rapid.T) {
	if c := m.take(t); c != nil {
		c.p.Cancel(m.now)
		c.p.Done(m.now, breaker.OutcomeFailure)
		m.past(c.name).ended = m.now
	}
}

// configure may switch the lane off: what began without one is found when its destination is next asked for.
func (m *laneModel) configure(t *rapid.T) {
	m.cfg.SlowLane.Slots = rapid.IntRange(0, 3).Draw(t, "slots")
	m.cfg.Default.Concurrency = new(rapid.IntRange(1, 5).Draw(t, "concurrency"))
	if err := m.r.Configure(m.now, m.cfg); err != nil {
		t.Fatal(err)
	}
	if m.cfg.SlowLane.Slots == 0 {
		for _, c := range m.out {
			c.slow = false
		}
	}
}

func (m *laneModel) set(t *rapid.T) {
	cfg := &DestinationConfig{Concurrency: new(rapid.IntRange(1, 5).Draw(t, "concurrency"))}
	if rapid.Bool().Draw(t, "back") {
		cfg = nil
	}
	if err := m.r.Set(m.now, m.pick(t), cfg); err != nil {
		t.Fatal(err)
	}
}

func (m *laneModel) reset(t *rapid.T) {
	name := m.pick(t)
	m.r.Reset(name, m.now)
	*m.past(name) = lanePast{began: m.past(name).began, ended: m.now}
}

// check holds what the lane counts against what the destinations have out.
func (m *laneModel) check(t *rapid.T) {
	held, out := 0, 0
	m.r.each(func(s *shard) {
		for _, d := range s.m {
			out += int(d.out)
			if d.laned() {
				held += int(d.out)
			}
			if d.old > d.out || d.out > 0 && d.old == 0 {
				t.Fatalf("%s: %d of %d calls in the older group", d.name, d.old, d.out)
			}
		}
	})
	if got := m.r.SlowLane().InUse; got != held || out != len(m.out) {
		t.Fatalf("the lane counts %d calls, its destinations have %d; %d permits of %d are out", got, held, out, len(m.out))
	}
}
