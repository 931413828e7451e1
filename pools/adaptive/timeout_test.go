package adaptive

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
)

func newTimeout(t testing.TB, cfg TimeoutConfig) *Timeout {
	t.Helper()
	a, err := NewTimeout(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// near says that a timeout is at least want and, by the width of a bucket, not much more.
func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want*5/4+time.Millisecond {
		t.Errorf("%s: timeout %v, want about %v", what, got, want)
	}
}

func TestTimeoutFollowsThePercentile(t *testing.T) {
	t.Parallel()
	a := newTimeout(t, TimeoutConfig{Floor: new(10 * time.Millisecond), Ceiling: 30 * time.Second})
	for i := range 20 {
		if got := a.Timeout(); got != 30*time.Second {
			t.Fatalf("%v after %d calls, want the ceiling until there are 20", got, i)
		}
		a.Record(100*time.Millisecond, breaker.OutcomeSuccess)
	}
	near(t, "all alike", a.Timeout(), 200*time.Millisecond)
	for range 300 {
		a.Record(time.Millisecond, breaker.OutcomeFailure)
		a.Record(time.Hour, breaker.OutcomeIgnored)
	}
	near(t, "quick failures, and what is ignored", a.Timeout(), 200*time.Millisecond)
	for range 500 {
		a.Record(2*time.Millisecond, breaker.OutcomeSuccess)
	}
	for range 1500 {
		a.Record(2*time.Millisecond, breaker.OutcomeSlow)
	}
	if got := a.Timeout(); got != 10*time.Millisecond {
		t.Errorf("%v, want the floor once the old calls have faded", got)
	}
	for range 50 {
		a.Record(time.Minute, breaker.OutcomeSuccess)
	}
	if got := a.Timeout(); got != 30*time.Second {
		t.Errorf("%v, want the ceiling", got)
	}
}

// A timeout that cuts off what has become slower finds the new length: the cut calls push it up, and never down.
func TestCutOffCallsRaiseTheTimeout(t *testing.T) {
	t.Parallel()
	a := newTimeout(t, TimeoutConfig{Floor: new(10 * time.Millisecond), Ceiling: 30 * time.Second, Margin: 1.5})
	run := func(n int, length time.Duration) (cut int) {
		for range n {
			before := a.Timeout()
			if length <= before {
				a.Record(length, breaker.OutcomeSuccess)
				continue
			}
			cut++
			a.Record(before, breaker.OutcomeFailure)
			if got := a.Timeout(); got < before {
				t.Fatalf("a call that was cut off lowered the timeout from %v to %v", before, got)
			}
		}
		return cut
	}
	run(200, 100*time.Millisecond)
	near(t, "before", a.Timeout(), 150*time.Millisecond)
	if cut := run(200, 5*time.Second); cut == 0 || cut > 50 {
		t.Errorf("%d of 200 calls were cut off before the timeout had found their length", cut)
	}
	if got := a.Timeout(); got < 5*time.Second {
		t.Errorf("timeout %v for calls of 5 s", got)
	}
	run(200, time.Hour)
	if got := a.Timeout(); got != 30*time.Second {
		t.Errorf("%v, want the ceiling for calls that never end", got)
	}
}

func TestTimeoutIsNeverBelowThePercentile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h Durations
		var all []int64
		n := rapid.IntRange(1, remembered-1).Draw(t, "calls")
		scale := rapid.Int64Range(1, int64(90*time.Minute)).Draw(t, "scale")
		for range n {
			took := rapid.Int64Range(0, scale).Draw(t, "took")
			all = append(all, took)
			h.Record(took, breaker.OutcomeSuccess)
		}
		p99, above := h.p99(), 0
		for _, took := range all {
			if took >= p99 {
				above++
			}
			if i := bucket(took); bucketEnd(i) <= took || i > 0 && bucketEnd(i-1) > took {
				t.Fatalf("%d is in bucket %d, which ends at %d", took, i, bucketEnd(i))
			}
		}
		if above > n/100 {
			t.Fatalf("%d of %d calls took longer than %v", above, n, time.Duration(p99))
		}
	})
	if i := bucket(math.MaxInt64); i != len(Durations{}.counts)-1 || bucketEnd(i) != math.MaxInt64 {
		t.Errorf("the longest call is in bucket %d", i)
	}
	if size := unsafe.Sizeof(Durations{}); size > 200 {
		t.Errorf("a histogram takes %d bytes", size)
	}
}

func TestTimeoutConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []TimeoutConfig{
		{Floor: new(time.Duration(1))}, {Floor: new(time.Second), Ceiling: time.Millisecond}, {Ceiling: -1}, {Margin: 0.5}, {Margin: math.NaN()}, {Samples: 401}, {Samples: -1},
	} {
		if _, err := NewTimeout(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
