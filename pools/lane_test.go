package pools

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
	"github.com/caisson-go/caisson/pools/limiter"
)

func laneOf(t testing.TB, slots int) *Destinations {
	t.Helper()
	return registry(t, DestinationsConfig{
		SlowLane: SlowLaneConfig{Slots: slots},
		Default:  DestinationConfig{Breaker: breaker.Config{FailurePercent: new(0), SlowPercent: new(0)}},
	})
}

// call makes one call that takes so long.
func call(t testing.TB, r *Destinations, name string, now time.Time, took time.Duration, o breaker.Outcome) {
	t.Helper()
	p, v := r.Admit(now, Request{Destination: name})
	if !v.OK() {
		t.Fatalf("%s: %+v", name, v)
	}
	p.Done(now.Add(took), o)
}

func admits(r *Destinations, name string, now time.Time) (list []*Permit) {
	for {
		p, v := r.Admit(now, Request{Destination: name})
		if !v.OK() {
			return list
		}
		list = append(list, &p)
	}
}

func TestSlowDestinationsShareTheLane(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 3)
	for _, name := range []string{"slow", "stuck"} {
		call(t, r, name, t0, 10*time.Second, breaker.OutcomeFailure)
	}
	call(t, r, "fast", t0, 10*time.Millisecond, breaker.OutcomeSuccess)
	now := at(11 * time.Second)
	slow := admits(r, "slow", now)
	if len(slow) != 3 || r.SlowLane() != (SlowLane{Slots: 3, InUse: 3}) {
		t.Fatalf("%d calls to a slow destination, %+v", len(slow), r.SlowLane())
	}
	wantVerdict(t, r, "stuck", now, false, Verdict{ReasonSlowLaneFull, time.Second})
	for range 50 {
		if _, v := r.Admit(now, Request{Destination: "fast"}); !v.OK() {
			t.Fatalf("a fast destination is refused: %+v", v)
		}
	}
	if s, _ := r.Lookup("slow", now); !s.InLane {
		t.Errorf("%+v", s)
	}
	slow[0].Done(now, breaker.OutcomeFailure)
	slow[0].Done(now, breaker.OutcomeFailure)
	call(t, r, "stuck", now, time.Second, breaker.OutcomeFailure)
}

// A destination whose calls have not come back is slow by their age alone, those in flight count, and it is out once they are.
func TestCallsInFlightAgeIntoTheLane(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 4)
	for _, name := range []string{"a", "b"} {
		call(t, r, name, t0, 10*time.Millisecond, breaker.OutcomeSuccess)
	}
	now := at(time.Second)
	hanging := make([]*Permit, 3)
	for i := range hanging {
		p, _ := r.Admit(now.Add(time.Duration(i)*time.Millisecond), Request{Destination: "a"})
		hanging[i] = &p
	}
	if in := r.SlowLane().InUse; in != 0 {
		t.Fatalf("%d in the lane before any of them is late", in)
	}
	now = now.Add(1100 * time.Millisecond)
	if list := admits(r, "a", now); len(list) != 1 || r.SlowLane().InUse != 4 {
		t.Errorf("%d more calls, %+v: want 1, and 4 in use", len(list), r.SlowLane())
	}
	if _, v := r.Admit(now, Request{Destination: "b"}); !v.OK() {
		t.Errorf("b: %+v", v)
	}
	hanging[0].Done(now, breaker.OutcomeSuccess) // the average is low still, and the others are not known to be late
	if in := r.SlowLane().InUse; in != 0 {
		t.Errorf("%d in the lane", in)
	}
	now = now.Add(1100 * time.Millisecond)
	if list := admits(r, "a", now); len(list) != 1 || r.SlowLane().InUse != 4 {
		t.Errorf("%d more calls, %+v: want 1, and 4 in use", len(list), r.SlowLane())
	}
}

func TestNewDestinationsHaveAShareOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 2)
	call(t, r, "slow", t0, time.Minute, breaker.OutcomeFailure)
	now := at(time.Minute)
	if n := len(admits(r, "slow", now)); n != 2 {
		t.Fatalf("%d", n)
	}
	first, v := r.Admit(now, Request{Destination: "new-1"})
	if !v.OK() {
		t.Fatalf("no place for a new destination beside the slow ones: %+v", v)
	}
	wantVerdict(t, r, "new-1", now, false, Verdict{ReasonSlowLaneFull, 100 * time.Millisecond}) // the second call waits for the first
	if _, v := r.Admit(now, Request{Destination: "new-2"}); !v.OK() {
		t.Fatalf("%+v", v)
	}
	wantVerdict(t, r, "new-3", now, false, Verdict{ReasonSlowLaneFull, 100 * time.Millisecond})
	first.Done(now.Add(50*time.Millisecond), breaker.OutcomeSuccess)
	if n := len(admits(r, "new-3", now)); n != 1 {
		t.Errorf("%d calls of a new one in the place that was given back", n)
	}
	for range 20 {
		if _, v := r.Admit(now, Request{Destination: "new-1"}); !v.OK() {
			t.Fatalf("new-1 has answered quickly: %+v", v)
		}
	}
}

// A hundred that hang from their first call on never hold more than twice the lane.
func TestHangingNewcomersAreBounded(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 10)
	now, out := t0, 0
	for range 60 {
		for i := range 100 {
			if _, v := r.Admit(now, Request{Destination: fmt.Sprintf("h%d", i)}); v.OK() {
				out++
			}
		}
		now = now.Add(250 * time.Millisecond)
	}
	if out != 20 {
		t.Errorf("%d calls hang, want 20", out)
	}
}

func TestQuickAnswersLeadOutOfTheLane(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 1)
	call(t, r, "a", t0, time.Hour, breaker.OutcomeFailure)
	now := at(time.Hour)
	other, _ := r.Admit(now, Request{Destination: "a"}) // holds the only slot
	wantVerdict(t, r, "a", now, false, Verdict{ReasonSlowLaneFull, time.Second})
	other.Done(now.Add(time.Millisecond), breaker.OutcomeSuccess)
	for i := range 4 {
		if s, _ := r.Lookup("a", now); !s.InLane {
			t.Fatalf("out of the lane after %d quick answers", i+1)
		}
		call(t, r, "a", now, time.Millisecond, breaker.OutcomeSuccess)
	}
	if n := 0; r.SlowLane().InUse != n {
		t.Errorf("%+v", r.SlowLane())
	}
	if s, _ := r.Lookup("a", now); s.InLane {
		t.Error("five quick answers do not lead out of the lane")
	}
}

func TestWhatWasLeftAloneIsNewAgain(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 1)
	for _, name := range []string{"a", "b"} {
		call(t, r, name, t0, time.Minute, breaker.OutcomeFailure)
	}
	now := at(time.Minute)
	p, _ := r.Admit(now, Request{Destination: "a"})
	defer p.Done(now, breaker.OutcomeFailure)
	wantVerdict(t, r, "b", now.Add(29*time.Second), false, Verdict{ReasonSlowLaneFull, time.Second})
	if n := len(admits(r, "b", now.Add(31*time.Second))); n != 1 {
		t.Errorf("%d calls, want one to show what it is like by now", n)
	}
}

func TestLaneIsForThoseWhoUseIt(t *testing.T) {
	t.Parallel()
	cfg := DestinationsConfig{
		SlowLane: SlowLaneConfig{Slots: 1, Over: 50 * time.Millisecond},
		Default:  DestinationConfig{Lane: new(false)},
		ByName:   map[string]DestinationConfig{"hook": {Lane: new(true)}},
	}
	r := registry(t, cfg)
	for _, name := range []string{"report", "hook"} {
		call(t, r, name, t0, time.Second, breaker.OutcomeSuccess)
	}
	now := at(time.Second)
	var report, hook []Permit
	for range 5 {
		if p, v := r.Admit(now, Request{Destination: "report"}); v.OK() {
			report = append(report, p)
		}
		if p, v := r.Admit(now, Request{Destination: "hook"}); v.OK() {
			hook = append(hook, p)
		}
	}
	if len(report) != 5 || len(hook) != 1 {
		t.Errorf("%d and %d calls, want 5 and 1", len(report), len(hook))
	}
	cfg.SlowLane.Slots = 0
	if err := r.Configure(now, cfg); err != nil {
		t.Fatal(err)
	}
	if r.SlowLane() != (SlowLane{}) {
		t.Errorf("%+v with the lane off", r.SlowLane())
	}
	if _, v := r.Admit(now, Request{Destination: "hook"}); !v.OK() {
		t.Errorf("%+v", v)
	}
	cfg.SlowLane.Slots = 1
	if err := r.Configure(now, cfg); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, r, "hook", now, false, Verdict{ReasonSlowLaneFull, 50 * time.Millisecond})
	for i := range hook {
		hook[i].Done(now, breaker.OutcomeSuccess)
	}
	for _, bad := range []SlowLaneConfig{{Slots: 1e7}, {Slots: -1}, {Slots: 1, Over: time.Millisecond}, {Slots: 1, Over: time.Hour}} {
		if _, err := NewDestinations(DestinationsConfig{SlowLane: bad}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// The limit that all share refuses after the lane has said yes: nothing is taken there either.
func TestRefusalLeavesTheLaneAlone(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{SlowLane: SlowLaneConfig{Slots: 5}, Rate: limiter.Config{Rate: new(1.0)}})
	p, _ := r.Admit(t0, Request{Destination: "a"})
	for range 3 {
		wantVerdict(t, r, "b", t0, false, Verdict{ReasonRateLimited, time.Second})
	}
	if got := r.SlowLane().InUse; got != 1 {
		t.Errorf("%d in the lane, want 1", got)
	}
	p.Done(t0, breaker.OutcomeSuccess)
	if got := r.SlowLane().InUse; got != 0 {
		t.Errorf("%d in the lane", got)
	}
}

// Somebody else may be quicker between the question and the taking.
func TestLastSlotIsTakenOnce(t *testing.T) {
	t.Parallel()
	r := laneOf(t, 2)
	call(t, r, "slow", t0, time.Minute, breaker.OutcomeFailure)
	for held, want := range []bool{true, true, false} {
		s, _, d := r.find("slow")
		r.held.Store(int64(held))
		if got := d.takeLane(stamp.Of(at(time.Minute))); got != want {
			t.Errorf("with %d of 2 taken: %v", held, got)
		}
		s.mu.Unlock()
	}
}

// Many destinations under different locks ask for the last slots at once.
func TestLaneHoldsUnderManyCallers(t *testing.T) {
	t.Parallel()
	const slots, callers = 8, 16
	r := registry(t, DestinationsConfig{
		Max: 100_000, SlowLane: SlowLaneConfig{Slots: slots}, IdleAfter: 1000 * time.Hour, // each caller has a clock of its own
		Default: DestinationConfig{Breaker: breaker.Config{FailurePercent: new(0)}},
	})
	for i := range callers {
		call(t, r, fmt.Sprintf("h%d", i), t0, time.Minute, breaker.OutcomeFailure)
	}
	var running, most atomic.Int32
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			name, now := fmt.Sprintf("h%d", i), at(time.Minute)
			for range 3000 {
				p, v := r.Admit(now, Request{Destination: name})
				if !v.OK() {
					continue // at the same time: whoever is left alone for long is new again
				}
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				runtime.Gosched()
				running.Add(-1)
				now = now.Add(1500 * time.Millisecond)
				p.Done(now, breaker.OutcomeFailure)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > slots || r.SlowLane().InUse != 0 {
		t.Errorf("%d calls to slow destinations at once in %d slots, %d left in use", n, slots, r.SlowLane().InUse)
	}
}
