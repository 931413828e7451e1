package schedule_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/schedule"
)

func TestReadyMade(t *testing.T) {
	t.Parallel()
	s, m, h := time.Second, time.Minute, time.Hour
	tests := []struct {
		name     string
		policy   schedule.Backoff
		nominal  []time.Duration
		attempts int
		span     time.Duration
	}{
		{"default", schedule.DefaultBackoff, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 512 * s, 1024 * s, 2048 * s, h, h}, 4, 7 * s},
		{"zero is default", schedule.Backoff{}, []time.Duration{s, 2 * s}, 3, 3 * s},
		{"queue", schedule.QueueBackoff, []time.Duration{30 * s, 2 * m, 10 * m, 10 * m}, 4, (30*s + 2*m + 10*m) * 12 / 10},
		{"webhook", schedule.WebhookBackoff, []time.Duration{10 * s, m, 5 * m, 15 * m, 30 * m, h, 4 * h}, 8, (5*h + 51*m + 10*s) * 12 / 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []time.Duration
			for n := range tt.nominal {
				got = append(got, tt.policy.Nominal(n+1))
			}
			if diff := cmp.Diff(tt.nominal, got); diff != "" {
				t.Errorf("curve (-want +got):\n%s", diff)
			}
			if got := tt.policy.Span(tt.attempts); got != tt.span {
				t.Errorf("Span(%d) = %s, want %s", tt.attempts, got, tt.span)
			}
		})
	}
	if got := schedule.WebhookBackoff.Len(); got != 7 {
		t.Errorf("webhook has %d delays, want 7 for 8 attempts", got)
	}
}

func TestRefusedAtConstruction(t *testing.T) {
	t.Parallel()
	second, year := time.Second, schedule.MaxDelay
	factor := func(low, high float64) func() error {
		return func() error { _, err := schedule.JitterFactor(low, high); return err }
	}
	exponential := func(base time.Duration, by float64, limit time.Duration) func() error {
		return func() error { _, err := schedule.Exponential(base, by, limit, schedule.JitterNone); return err }
	}
	fixed := func(j schedule.Jitter, ds ...time.Duration) func() error {
		return func() error { _, err := schedule.Fixed(ds, j); return err }
	}
	constant := func(j schedule.Jitter, d time.Duration) func() error {
		return func() error { _, err := schedule.Constant(d, j); return err }
	}
	tests := []struct {
		name  string
		build func() error
		want  string
	}{
		{"base 0", exponential(0, 2, second), "base is 0s"},
		{"base negative", exponential(-1, 2, second), "must be positive"},
		{"factor 1", exponential(second, 1, second), "use constant"},
		{"factor NaN", exponential(second, math.NaN(), second), "factor is NaN"},
		{"factor infinite", exponential(second, math.Inf(1), second), "factor is +Inf"},
		{"limit below base", exponential(second, 2, second/2), "limit is 500ms"},
		{"limit above a year", exponential(second, 2, year+1), "and 365d"},
		{"no delays", fixed(schedule.JitterNone), "no delays"},
		{"negative delay", fixed(schedule.JitterNone, second, -second), "delay 2 is -1s"},
		{"hot loop", fixed(schedule.JitterNone, second, 0), "repeat without a pause"},
		{"decorrelated list", fixed(schedule.JitterDecorrelated, second), "needs an exponential curve"},
		{"constant 0", constant(schedule.JitterNone, 0), "delay is 0s"},
		{"decorrelated constant", constant(schedule.JitterDecorrelated, second), "needs an exponential curve"},
		{"factor jitter upside down", factor(1.2, 0.8), "low <= high"},
		{"factor jitter negative", factor(-0.1, 1), "0 <= low"},
		{"factor jitter 0", factor(0, 0), "high above 0"},
		{"factor jitter huge", factor(1, 11), "<= 10"},
		{"factor jitter NaN", factor(math.NaN(), 1), "xNaN..1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.build(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// genPolicy draws any policy that can be built.
func genPolicy() *rapid.Generator[schedule.Backoff] {
	return rapid.Custom(func(t *rapid.T) schedule.Backoff {
		low := rapid.Float64Range(0, 5).Draw(t, "low")
		factor, err := schedule.JitterFactor(low, rapid.Float64Range(max(low, 0.01), 10).Draw(t, "high"))
		if err != nil {
			t.Fatal(err)
		}
		curves := []schedule.Jitter{schedule.JitterNone, schedule.JitterFull, schedule.JitterEqual, factor, schedule.JitterDecorrelated}
		anyDelay := rapid.Int64Range(1, int64(schedule.MaxDelay))
		var p schedule.Backoff
		switch rapid.IntRange(0, 2).Draw(t, "shape") {
		case 0:
			base := time.Duration(anyDelay.Draw(t, "base"))
			limit := time.Duration(rapid.Int64Range(int64(base), int64(schedule.MaxDelay)).Draw(t, "limit"))
			p, err = schedule.Exponential(base, rapid.Float64Range(1.1, 100).Draw(t, "factor"), limit, rapid.SampledFrom(curves).Draw(t, "jitter"))
		case 1:
			var ds []time.Duration
			for _, d := range rapid.SliceOfN(anyDelay, 1, 10).Draw(t, "list") {
				ds = append(ds, time.Duration(d))
			}
			p, err = schedule.Fixed(ds, rapid.SampledFrom(curves[:4]).Draw(t, "jitter"))
		default:
			p, err = schedule.Constant(time.Duration(anyDelay.Draw(t, "delay")), rapid.SampledFrom(curves[:4]).Draw(t, "jitter"))
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
}

func genAttempt() *rapid.Generator[int] {
	return rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(math.MinInt, math.MaxInt), rapid.Just(math.MaxInt))
}

func TestDelayStaysInItsWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy().Draw(t, "policy")
		n := genAttempt().Draw(t, "failed")
		prev := time.Duration(rapid.Int64().Draw(t, "prev"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		low, high := p.Shortest(n), p.Longest(n)
		if low < 0 || high < low {
			t.Fatalf("window of attempt %d is %s to %s", n, low, high)
		}
		for range 10 {
			if d := p.Delay(n, prev, r); d < low || d > high {
				t.Fatalf("attempt %d waits %s, outside %s to %s", n, d, low, high)
			}
		}
	})
}

// TestExponentialMatchesExactArithmetic compares the curve with the same product in 200-bit numbers.
func TestExponentialMatchesExactArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base"))
		limit := time.Duration(rapid.Int64Range(int64(base), int64(schedule.MaxDelay)).Draw(t, "limit"))
		by := rapid.Float64Range(1.1, 100).Draw(t, "factor")
		p, err := schedule.Exponential(base, by, limit, schedule.JitterNone)
		if err != nil {
			t.Fatal(err)
		}
		want := new(big.Float).SetPrec(200).SetInt64(int64(base))
		for n := 1; n <= 60; n++ {
			exact, _ := want.Float64()
			expected := min(exact, float64(limit))
			if got := float64(p.Delay(n, 0, nil)); math.Abs(got-expected) > 2+expected*1e-12 {
				t.Fatalf("attempt %d waits %v, exact is %v", n, got, expected)
			}
			want.Mul(want, big.NewFloat(by).SetPrec(200))
		}
	})
}

func TestNominalNeverFallsOnACurve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, int64(schedule.MaxDelay)).Draw(t, "base"))
		limit := time.Duration(rapid.Int64Range(int64(base), int64(schedule.MaxDelay)).Draw(t, "limit"))
		p, err := schedule.Exponential(base, rapid.Float64Range(1.1, 100).Draw(t, "factor"), limit, schedule.JitterNone)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, math.MaxInt-1).Draw(t, "failed")
		if a, b := p.Nominal(n), p.Nominal(n+1); a > b || b > limit {
			t.Fatalf("attempt %d waits %s, the next %s, limit %s", n, a, b, limit)
		}
	})
}

func TestSpanIsTheSumOfTheLongest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy().Draw(t, "policy")
		attempts := rapid.IntRange(-1, 600).Draw(t, "attempts")
		sum := new(big.Int)
		for n := 1; n < attempts; n++ {
			sum.Add(sum, big.NewInt(int64(p.Longest(n))))
		}
		want := time.Duration(math.MaxInt64)
		if sum.IsInt64() {
			want = time.Duration(sum.Int64())
		}
		if got := p.Span(attempts); got != want {
			t.Fatalf("Span(%s, %d) = %d, want %d", p, attempts, got, want)
		}
		if got := p.Span(math.MaxInt); got < want && attempts > 0 {
			t.Fatalf("endless attempts span %d, %d attempts %d", got, attempts, want)
		}
	})
}

func TestPolicyDoesNotShareTheCallersList(t *testing.T) {
	t.Parallel()
	ds := []time.Duration{time.Second, time.Minute}
	p, err := schedule.Fixed(ds, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	ds[0] = 0
	if got := p.Nominal(1); got != time.Second {
		t.Fatalf("a later change of the list reached the policy: %s", got)
	}
}
