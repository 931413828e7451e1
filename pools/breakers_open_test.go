package pools

import (
	eventheap "container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
)

// openWorld plays calls to one destination in virtual time: an endless backlog, or arrivals at a rate, for so many places. What an answer is,
// and how long it takes, answer says.
type openWorld struct {
	places int
	rate   float64 // of arrivals; 0 keeps all places taken
	answer func(now time.Time) (breaker.Outcome, time.Duration)
	most   int // calls after which it is enough; 0 for no end

	r       *Destinations
	opened  time.Time // zero until it does
	reason  breaker.TransitionReason
	started int
	now     time.Time
	calls   openCalls
}

type openCall struct {
	end time.Time
	p   *Permit
	o   breaker.Outcome
}

type openCalls []openCall

func (c openCalls) Len() int           { return len(c) }
func (c openCalls) Less(i, j int) bool { return c[i].end.Before(c[j].end) }
func (c openCalls) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *openCalls) Push(x any)        { *c = append(*c, x.(openCall)) } //nolint:forcetypeassert // heap
func (c *openCalls) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}

func newOpenWorld(t interface{ Fatal(args ...any) }, cfg breaker.Config, places int, rate float64) *openWorld {
	w := &openWorld{places: places, rate: rate, now: t0}
	r, err := NewDestinations(DestinationsConfig{
		Default: DestinationConfig{Breaker: cfg}, Max: 10, Random: half, // few, and so one shard to judge
		OnTransition: func(tr breaker.Transition) {
			if tr.To == breaker.StateOpen && w.opened.IsZero() {
				w.opened, w.reason = tr.At, tr.Reason
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.r = r
	return w
}

// run plays until the breaker opens, or until then.
func (w *openWorld) run(until time.Time, random *rand.Rand) {
	next, judge := w.now, w.now
	gap := func() time.Duration { return time.Duration(random.ExpFloat64() / w.rate * float64(time.Second)) }
	for w.now.Before(until) && w.opened.IsZero() && (w.most == 0 || w.started < w.most) {
		step := judge
		if len(w.calls) == 0 && w.rate > 0 { // nothing to judge
			step = next
			judge = next
		}
		if w.rate > 0 && next.Before(step) {
			step = next
		}
		if len(w.calls) > 0 && w.calls[0].end.Before(step) {
			step = w.calls[0].end
		}
		w.now = step
		for len(w.calls) > 0 && !w.calls[0].end.After(w.now) && w.opened.IsZero() {
			c := eventheap.Pop(&w.calls).(openCall) //nolint:forcetypeassert // heap
			c.p.Done(w.now, c.o)
		}
		if !judge.After(w.now) {
			w.r.Judge(w.now)
			judge = w.now.Add(500 * time.Millisecond)
		}
		switch {
		case w.rate == 0:
			for len(w.calls) < w.places && w.start() {
			}
		case !next.After(w.now):
			w.start()
			next = w.now.Add(gap())
		}
	}
}

// start starts a call if there is a place and the destination lets it.
func (w *openWorld) start() bool {
	if len(w.calls) >= w.places || !w.opened.IsZero() {
		return false
	}
	p, v := w.r.Admit(w.now, Request{Destination: "d", Places: w.places})
	if !v.OK() {
		return false
	}
	w.started++
	o, takes := w.answer(w.now)
	eventheap.Push(&w.calls, openCall{w.now.Add(takes), &p, o})
	return true
}

// TestBreakersOpen : when every call fails or hangs it opens, whatever timeout, window, traffic and places are, at a bounded cost.
func TestBreakersOpen(t *testing.T) {
	t.Parallel()
	t.Run("whatever the numbers", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			cfg := breaker.Config{
				FailurePercent: new(rapid.IntRange(1, 100).Draw(t, "percent")),
				Window:         time.Duration(rapid.IntRange(1, 600).Draw(t, "window")) * time.Second,
				MinimumCalls:   rapid.SampledFrom([]int{0, 20, 1000}).Draw(t, "minimum"),
			}
			places := rapid.IntRange(1, 40).Draw(t, "places")
			timeout := time.Duration(rapid.IntRange(1, 1200).Draw(t, "timeout")) * 100 * time.Millisecond
			rate := rapid.SampledFrom([]float64{0, 0, 0.01, 1, 200}).Draw(t, "rate")
			hangs := rapid.Bool().Draw(t, "hangs")
			well := rapid.SampledFrom([]int{0, 0, 1, 1000}).Draw(t, "calls before it")
			w := newOpenWorld(t, cfg, places, rate)
			random := rand.New(rand.NewPCG(1, uint64(places)))
			w.answer = func(time.Time) (breaker.Outcome, time.Duration) { return breaker.OutcomeSuccess, 5 * time.Millisecond }
			for range well {
				p, v := w.r.Admit(w.now, Request{Destination: "d", Places: places})
				if !v.OK() {
					t.Fatal(v)
				}
				w.now = w.now.Add(5 * time.Millisecond)
				p.Done(w.now, breaker.OutcomeSuccess)
			}
			takes := 5 * time.Millisecond
			if hangs {
				takes = timeout
			}
			w.answer = func(time.Time) (breaker.Outcome, time.Duration) { return breaker.OutcomeFailure, takes }
			began := w.now
			w.run(began.Add(24*time.Hour), random)
			most := max(8, 2*places)
			if w.opened.IsZero() || w.started > most {
				t.Fatalf("opened %v, after %d calls; at most %d are to be spent", !w.opened.IsZero(), w.started, most)
			}
			rounds := time.Duration(3)
			if places < 3 {
				rounds = 8
			}
			if took := w.opened.Sub(began); rate == 0 && hangs && took > rounds*timeout+time.Second {
				t.Fatalf("opened after %v, which is %.1f timeouts", took, took.Seconds()/timeout.Seconds())
			}
		})
	})
	// The table of the fault as it was met, with kinds that time out after 10 and 30 s.
	for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second} {
		for _, places := range []int{1, 2, 4, 6, 8, 12, 16, 19} {
			t.Run(fmt.Sprintf("hang/%v/%d places", timeout, places), func(t *testing.T) {
				t.Parallel()
				w := newOpenWorld(t, breaker.Config{}, places, 0)
				w.answer = func(time.Time) (breaker.Outcome, time.Duration) { return breaker.OutcomeFailure, timeout }
				w.run(t0.Add(30*time.Minute), nil)
				if w.opened.IsZero() || w.started > max(8, 2*places) {
					t.Errorf("opened %v, %d calls", !w.opened.IsZero(), w.started)
				}
			})
		}
	}
	for _, places := range []int{10, 20, 512, 4000} {
		t.Run(fmt.Sprintf("200 a second that hang/%d places", places), func(t *testing.T) {
			t.Parallel()
			w := newOpenWorld(t, breaker.Config{}, places, 200)
			random := rand.New(rand.NewPCG(2, 2))
			w.answer = func(now time.Time) (breaker.Outcome, time.Duration) {
				if now.Before(t0.Add(time.Minute)) {
					return breaker.OutcomeSuccess, time.Duration(20+random.IntN(60)) * time.Millisecond
				}
				return breaker.OutcomeFailure, 10 * time.Second
			}
			w.run(t0.Add(2*time.Minute), random)
			if took := w.opened.Sub(t0.Add(time.Minute)); took < 0 || took > 5*time.Second || w.reason != breaker.TransitionReasonNoAnswer {
				t.Errorf("opened after %v (%s), want it within 5 s by age", took, w.reason)
			}
		})
	}
}

// TestBreakersOpenNotOnRareErrors : at an independent 5 % of errors or timeouts no breaker opens, at any traffic.
func TestBreakersOpenNotOnRareErrors(t *testing.T) {
	t.Parallel()
	seeds, calls := uint64(100), 500
	if os.Getenv("SOAK") != "" {
		calls = 400_000
	}
	for _, tt := range []struct {
		places int
		rate   float64
		takes  time.Duration // an answer
		hang   time.Duration // a failure
	}{
		{1, 0, 10 * time.Millisecond, 30 * time.Second},
		{2, 0, time.Second, time.Millisecond},
		{4, 0, 10 * time.Millisecond, 30 * time.Second},
		{10, 0, time.Second, time.Millisecond},
		{20, 5, 200 * time.Millisecond, 30 * time.Second},
		{20, 200, 50 * time.Millisecond, 10 * time.Second},
		{100, 100, time.Second, time.Millisecond},
		{400, 200, time.Second, time.Millisecond},
		{400, 50, 6 * time.Second, 30 * time.Second},
		{20, 0.02, time.Second, 30 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d places, %v a second, %v or %v", tt.places, tt.rate, tt.takes, tt.hang), func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				w := newOpenWorld(t, breaker.Config{}, tt.places, tt.rate)
				w.most = calls
				random := rand.New(rand.NewPCG(seed, 3))
				w.answer = func(time.Time) (breaker.Outcome, time.Duration) {
					if random.Float64() < 0.05 {
						return breaker.OutcomeFailure, tt.hang
					}
					return breaker.OutcomeSuccess, time.Duration(float64(tt.takes) * (0.5 + random.Float64()))
				}
				w.run(t0.Add(1e5*time.Hour), random)
				if !w.opened.IsZero() {
					t.Fatalf("seed %d: opened after %d calls: %s", seed, w.started, w.reason)
				}
			}
		})
	}
}
