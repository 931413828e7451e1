package pools

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/internal/breakermodel"
	"github.com/caisson-go/caisson/pools/limiter"
)

// modelDestination holds each limit apart, in its simplest form.
type modelDestination struct {
	breaker   *breakermodel.Breaker
	throttled time.Time
	out       map[int]modelTaken
	calls     []time.Time // that hold a rate token of the destination
	tokens    int         // of an AWS budget
}

type modelTaken struct {
	retry bool
	at    time.Time
}

const (
	modelConcurrency = 3
	modelBurst       = 4 // calls in any modelBurst seconds, and one a second over time
	modelTokens      = 30
	modelTotal       = 6
)

// conforms replays the calls through a bucket that holds burst and leaks one a second.
func conforms(calls []time.Time, now time.Time, burst int) bool {
	level, last := time.Duration(0), t0
	for _, c := range append(append([]time.Time{}, calls...), now) {
		level = max(level-c.Sub(last), 0) + time.Second
		last = c
	}
	return level <= time.Duration(burst)*time.Second
}

func (m *modelDestination) verdict(now time.Time, retry bool, total []time.Time) Reason {
	open, wait := m.breaker.Refuses(now), time.Duration(0)
	if open && m.breaker.State == breaker.StateOpen {
		wait = m.breaker.Until.Sub(now)
	} else if open {
		wait = time.Second // at most: leases are long here
	}
	switch {
	case m.breaker.Override == breaker.OverrideOpen:
		return ReasonForcedOpen
	case m.throttled.After(now) && m.throttled.Sub(now) > wait:
		return ReasonThrottled
	case open:
		return ReasonBreakerOpen
	case len(m.out) >= modelConcurrency:
		return ReasonConcurrencyFull
	case !conforms(m.calls, now, modelBurst):
		return ReasonRateLimited
	case retry && m.tokens < 14:
		return ReasonBudgetEmpty
	case !conforms(total, now, modelTotal):
		return ReasonRateLimited
	}
	return ReasonOK
}

func TestDestinationsMatchTheModel(t *testing.T) {
	t.Parallel()
	limits := breaker.Config{
		MinimumCalls: 12, HungAfter: new(time.Duration(0)), OpenFor: 5 * time.Second, OpenGrowth: 2, OpenMax: 17 * time.Second, OpenJitter: new(0.0), Probes: 2,
		ProbesToClose: 2, ProbeLease: time.Hour,
	}
	rapid.Check(t, func(t *rapid.T) {
		r, err := NewDestinations(DestinationsConfig{
			Rate: limiter.Config{Rate: new(1.0), Burst: modelTotal},
			Default: DestinationConfig{
				Breaker: limits, Concurrency: new(modelConcurrency), Rate: limiter.Config{Rate: new(1.0), Burst: modelBurst},
				Budget: budget.Config{Form: budget.FormAWS, Tokens: modelTokens},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &modelWorld{r: r, now: t0, permits: map[int]*Permit{}, owner: map[int]string{}, dests: map[string]*modelDestination{}}
		for _, name := range []string{"a", "b"} {
			m := &modelDestination{out: map[int]modelTaken{}, tokens: modelTokens}
			m.breaker = breakermodel.New(limits.WithDefaults())
			m.breaker.Places = modelConcurrency
			w.dests[name] = m
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait":     w.wait,
			"admit":    w.admit,
			"again":    w.admit,
			"turn":     func(t *rapid.T) { w.sick = rapid.Bool().Draw(t, "sick") },
			"done":     w.done,
			"cancel":   w.cancel,
			"throttle": w.throttle,
			"force":    w.force,
			"":         w.check,
		})
	})
}

type modelWorld struct {
	r       *Destinations
	now     time.Time
	next    int
	permits map[int]*Permit
	owner   map[int]string
	dests   map[string]*modelDestination
	total   []time.Time
	sick    bool
}

func (w *modelWorld) pick(t *rapid.T) (string, *modelDestination) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "destination")
	return name, w.dests[name]
}

// permit picks one that was ever handed out, completed or not.
func (w *modelWorld) permit(t *rapid.T) (int, *modelDestination) {
	var ids []int
	for id := range w.next {
		if w.permits[id] != nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return -1, nil
	}
	id := rapid.SampledFrom(ids).Draw(t, "permit")
	return id, w.dests[w.owner[id]]
}

func (w *modelWorld) wait(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 16).Draw(t, "half seconds")) * 500 * time.Millisecond)
}

func (w *modelWorld) admit(t *rapid.T) {
	name, m := w.pick(t)
	retry := rapid.Bool().Draw(t, "retry")
	want := m.verdict(w.now, retry, w.total)
	peek := w.r.Peek(w.now, Request{Destination: name, Retry: retry})
	p, got := w.r.Admit(w.now, Request{Destination: name, Retry: retry, Places: 20})
	if got.Reason != want || peek != got || got.OK() != (got.Wait == 0) {
		t.Fatalf("Admit = %+v, Peek = %+v, want %v", got, peek, want)
	}
	if !got.OK() {
		return
	}
	id := w.next
	w.next++
	w.permits[id], w.owner[id] = &p, name
	m.breaker.Admit(id, w.now)
	m.out[id] = modelTaken{retry, w.now}
	m.calls, w.total = append(m.calls, w.now), append(w.total, w.now)
	if retry {
		m.tokens -= 14
	}
}

func (w *modelWorld) done(t *rapid.T) {
	id, m := w.permit(t)
	if m == nil {
		return
	}
	o := rapid.SampledFrom(breakermodel.Outcomes(w.sick)).Draw(t, "outcome")
	w.permits[id].Done(w.now, o)
	taken, out := m.out[id]
	if !out {
		return
	}
	delete(m.out, id)
	if o == breaker.OutcomeSuccess || o == breaker.OutcomeSlow {
		refund := 1
		if taken.retry {
			refund = 14
		}
		m.tokens = min(m.tokens+refund, modelTokens)
	}
	m.breaker.Done(id, w.now, o)
}

// cancel is only right to compare at the time of the admission: later the model's bucket has leaked what never was in it.
func (w *modelWorld) cancel(t *rapid.T) {
	id, m := w.permit(t)
	if m == nil {
		return
	}
	taken, out := m.out[id]
	if !out || !taken.at.Equal(w.now) {
		return
	}
	w.permits[id].Cancel(w.now)
	delete(m.out, id)
	m.calls, w.total = m.calls[:len(m.calls)-1], w.total[:len(w.total)-1]
	if taken.retry {
		m.tokens = min(m.tokens+14, modelTokens)
	}
	m.breaker.Done(id, w.now, breaker.OutcomeIgnored)
}

func (w *modelWorld) throttle(t *rapid.T) {
	name, m := w.pick(t)
	until := w.now.Add(time.Duration(rapid.IntRange(-5, 10).Draw(t, "seconds")) * time.Second)
	w.r.Throttle(name, w.now, until)
	if until.After(m.throttled) && until.After(w.now) {
		m.throttled = until
	}
}

func (w *modelWorld) force(t *rapid.T) {
	name, m := w.pick(t)
	m.breaker.Override = rapid.SampledFrom([]breaker.Override{breaker.OverrideNone, breaker.OverrideNone, breaker.OverrideNone, breaker.OverrideOpen, breaker.OverrideClosed}).Draw(t, "override")
	w.r.Force(name, w.now, m.breaker.Override)
}

func (w *modelWorld) check(t *rapid.T) {
	for name, m := range w.dests {
		s, ok := w.r.Lookup(name, w.now)
		if !ok {
			continue
		}
		if s.State != m.breaker.State || s.InUse != len(m.out) || s.RetriesLeft != m.tokens/14 {
			t.Fatalf("%s: %+v, want %v, %d in use, %d tokens", name, s, m.breaker.State, len(m.out), m.tokens)
		}
	}
}
