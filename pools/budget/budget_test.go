package budget

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

func budget(t testing.TB, cfg Config) *Budget {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// retries counts how many retries are granted before the first refusal.
func retries(b *Budget, now time.Time, try Try) int {
	n := 0
	for n < 10_000 && b.Take(now, try) {
		n++
	}
	return n
}

func TestFinagleBudget(t *testing.T) {
	t.Parallel()
	b := budget(t, Config{})
	if n := retries(b, t0, TryRetry); n != 30 {
		t.Errorf("%d retries in a window without successes, want 3 per second", n)
	}
	if n := retries(b, at(8*time.Second-1), TryRetry); n > 0 {
		t.Errorf("%d retries more within the window", n)
	}
	if n := retries(b, at(20*time.Second), TryRetry); n != 30 {
		t.Errorf("%d retries in the next window", n)
	}

	b = budget(t, Config{Floor: new(0.0)})
	for range 1000 {
		b.Record(t0, TryFirst, breaker.OutcomeSuccess)
		b.Record(t0, TryFirst, breaker.OutcomeFailure)
		b.Record(t0, TryFirst, breaker.OutcomeIgnored)
	}
	if left := b.Left(t0); left != 100 {
		t.Errorf("%d left after 1,000 successes, want a tenth", left)
	}
	if n := retries(b, at(time.Second), TryRetry); n != 100 {
		t.Errorf("%d retries", n)
	}
	b.Return(at(time.Second), TryRetry)
	if n := retries(b, at(time.Second), TryRetry); n != 1 {
		t.Errorf("%d retries after one was given back", n)
	}
	if n := retries(b, at(20*time.Second), TryRetry); n != 0 {
		t.Errorf("%d retries on successes of long ago", n)
	}
}

func TestGRPCBudget(t *testing.T) {
	t.Parallel()
	b := budget(t, Config{Form: FormGRPC})
	for i := range 5 { // 10 tokens: allowed while more than 5 are left
		if !b.Take(t0, TryRetry) || b.Left(t0) != 5-i {
			t.Fatalf("refused after %d failures, %d left", i, b.Left(t0))
		}
		b.Record(t0, TryFirst, breaker.OutcomeFailure)
	}
	if b.Take(t0, TryRetry) || b.Allows(t0, TryRetry) {
		t.Error("allowed with half of the tokens")
	}
	b.Record(t0, TryFirst, breaker.OutcomeIgnored)
	if b.Allows(t0, TryRetry) {
		t.Error("an ignored outcome earned something")
	}
	b.Record(t0, TryFirst, breaker.OutcomeSuccess) // a tenth of a token over the half
	if !b.Allows(t0, TryRetry) {
		t.Error("refused above the half")
	}
	for range 1000 {
		b.Record(t0, TryFirst, breaker.OutcomeFailure)
	}
	for i := range 51 { // never below zero: 51 successes lead over the half again
		if b.Allows(t0, TryRetry) {
			t.Fatalf("allowed after %d successes", i)
		}
		b.Record(t0, TryFirst, breaker.OutcomeSuccess)
	}
	if !b.Allows(t0, TryRetry) {
		t.Error("refused after 51 successes")
	}
}

func TestAWSBudget(t *testing.T) {
	t.Parallel()
	b := budget(t, Config{Form: FormAWS})
	if n := retries(b, t0, TryRetry); n != 35 { // 500 / 14
		t.Errorf("%d transient retries", n)
	}
	if n := retries(b, t0, TryThrottled); n != 2 { // the 10 that are left, at 5 each
		t.Errorf("%d throttling retries", n)
	}
	for range 14 {
		b.Record(at(time.Hour), TryFirst, breaker.OutcomeSuccess)
	}
	if n := retries(b, at(time.Hour), TryRetry); n != 1 {
		t.Errorf("%d retries for 14 successes", n)
	}
	b.Record(t0, TryRetry, breaker.OutcomeFailure)
	b.Record(t0, TryThrottled, breaker.OutcomeSuccess) // brings back its 5
	if n := retries(b, t0, TryThrottled); n != 1 {
		t.Errorf("%d retries for a retry that succeeded", n)
	}
	for range 10_000 {
		b.Record(t0, TryFirst, breaker.OutcomeSuccess)
	}
	if n := retries(b, t0, TryThrottled); n != 100 {
		t.Errorf("%d throttling retries of a full quota", n)
	}
}

func TestNoBudget(t *testing.T) {
	t.Parallel()
	b := budget(t, Config{Form: FormNone})
	if n := retries(b, t0, TryRetry); n != 10_000 {
		t.Errorf("refused after %d", n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{
		{Form: "half"},
		{Ratio: -0.1},
		{Ratio: 1.1},
		{Floor: new(1e9)},
		{Window: time.Millisecond},
		{Tokens: -1},
		{Cost: -1},
		{ThrottleCost: -1},
		{Refund: -1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
}

// TestFinagleBudgetMatchesAListOfEntries compares with a ledger from which entries are struck when their slice has left.
func TestFinagleBudgetMatchesAListOfEntries(t *testing.T) {
	t.Parallel()
	type entry struct {
		slice int64
		milli int64
	}
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.IntRange(0, 3).Draw(t, "floor")
		cfg := Config{Ratio: 0.25, Floor: new(float64(floor)), Window: 5 * time.Second}
		b, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var ledger []entry
		// t0 lies on no second of the process, so the reference asks for the slice that a stamp falls into.
		slice := func(now time.Time) int64 {
			n := stamp.Of(now) / int64(time.Second)
			if stamp.Of(now) < 0 && stamp.Of(now)%int64(time.Second) != 0 {
				n--
			}
			return n
		}
		now := t0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 300, 1000, 2500, 7000}).Draw(t, "ms")) * time.Millisecond)
			o := rapid.SampledFrom([]breaker.Outcome{breaker.OutcomeSuccess, breaker.OutcomeSlow, breaker.OutcomeFailure, breaker.OutcomeIgnored}).Draw(t, "outcome")
			b.Record(now, TryFirst, o)
			if o == breaker.OutcomeSuccess || o == breaker.OutcomeSlow {
				ledger = append(ledger, entry{slice(now), 250})
			}
			balance := int64(floor * 5 * 1000)
			for _, e := range ledger {
				if e.slice > slice(now)-5 {
					balance += e.milli
				}
			}
			want := balance >= 1000
			if b.Allows(now, TryRetry) != want {
				t.Fatalf("Allows = %v with a balance of %d", !want, balance)
			}
			if rapid.Bool().Draw(t, "retry") {
				if b.Take(now, TryRetry) != want {
					t.Fatalf("Retry = %v with a balance of %d", !want, balance)
				}
				if want {
					ledger = append(ledger, entry{slice(now), -1000})
				}
			}
		}
	})
}

// TestTokenBudgetsMatchCounting compares the two forms without time with plain counting.
func TestTokenBudgetsMatchCounting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		aws := rapid.Bool().Draw(t, "aws")
		cfg, tokens, limit := Config{Form: FormGRPC}, 100, 100 // gRPC in tenths
		if aws {
			cfg, tokens, limit = Config{Form: FormAWS, Tokens: 40}, 40, 40
		}
		b, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				b.Record(t0, TryFirst, breaker.OutcomeSuccess)
				tokens = min(tokens+1, limit)
			case 1:
				b.Record(t0, TryFirst, breaker.OutcomeFailure)
				if !aws {
					tokens = max(tokens-10, 0)
				}
			default:
				try := rapid.SampledFrom([]Try{TryRetry, TryThrottled}).Draw(t, "try")
				cost, want := 0, tokens > 50
				if aws {
					cost = map[Try]int{TryRetry: 14, TryThrottled: 5}[try]
					want = tokens >= cost
				}
				if got := b.Take(t0, try); got != want {
					t.Fatalf("Take(%v) = %v with %d tokens", try, got, tokens)
				}
				if want {
					tokens -= cost
				}
			}
		}
	})
}
