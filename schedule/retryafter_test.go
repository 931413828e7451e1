package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/schedule"
)

var now = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		header string
		want   time.Duration
		ok     bool
	}{
		{"3", 3 * time.Second, true},
		{" 120 ", 2 * time.Minute, true},
		{"0", 0, true},
		{"14400", 4 * time.Hour, true},
		{"14401", 4 * time.Hour, true},
		{"99999999", 4 * time.Hour, true},
		{"99999999999999999999999999", 4 * time.Hour, true},
		{"Sun, 08 Mar 2026 12:00:03 GMT", 3 * time.Second, true},
		{"Sunday, 08-Mar-26 12:00:03 GMT", 3 * time.Second, true},
		{"Sun Mar  8 12:00:03 2026", 3 * time.Second, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", 4 * time.Hour, true},
		{"Sun, 08 Mar 2026 12:00:00 GMT", 0, false},
		{"Sun, 08 Mar 2026 11:59:59 GMT", 0, false},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, false},
		{"-5", 0, false},
		{"+5", 0, false},
		{"abc", 0, false},
		{"", 0, false},
		{"1.5", 0, false},
		{"1e3", 0, false},
		{"3, 4", 0, false},
		{"３", 0, false},
		{"2026-03-08T12:00:03Z", 0, false},
	}
	for _, tt := range tests {
		got, ok := schedule.ParseRetryAfter(tt.header, now)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParseRetryAfter(%q) = %s, %v; want %s, %v", tt.header, got, ok, tt.want, tt.ok)
		}
	}
}

// TestRetryNeverComesBeforeTheHint goes from the header to the delay, as a delivery does, with a base of 1 s and 20 % jitter.
func TestRetryNeverComesBeforeTheHint(t *testing.T) {
	t.Parallel()
	around, err := schedule.JitterFactor(0.8, 1.2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := schedule.Exponential(time.Second, 2, time.Hour, around)
	if err != nil {
		t.Fatal(err)
	}
	backoffLow, backoffHigh := 800*time.Millisecond, 1200*time.Millisecond
	tests := []struct {
		header    string
		low, high time.Duration
	}{
		{"3", 3 * time.Second, 3600 * time.Millisecond},
		{"Sun, 08 Mar 2026 12:00:03 GMT", 3 * time.Second, 3600 * time.Millisecond},
		{"0", backoffLow, backoffHigh},
		{"-5", backoffLow, backoffHigh},
		{"abc", backoffLow, backoffHigh},
		{"99999999", 4 * time.Hour, 4*time.Hour + 48*time.Minute},
		{"Sun, 08 Mar 2026 11:00:00 GMT", backoffLow, backoffHigh},
	}
	for _, tt := range tests {
		for range 500 {
			hint, _ := schedule.ParseRetryAfter(tt.header, now)
			if d := schedule.Merge(p.Delay(1, 0, nil), hint, nil); d < tt.low || d > tt.high {
				t.Fatalf("Retry-After %q: next try after %s, want %s to %s", tt.header, d, tt.low, tt.high)
			}
		}
	}
}

func TestMergeIsNeverLessThanEither(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scheduled := time.Duration(rapid.Int64().Draw(t, "scheduled"))
		hint := time.Duration(rapid.OneOf(rapid.Int64(), rapid.Just[int64](math.MaxInt64)).Draw(t, "hint"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		got := schedule.Merge(scheduled, hint, r)
		if got < 0 || got < scheduled || got < hint {
			t.Fatalf("Merge(%d, %d) = %d", scheduled, hint, got)
		}
		if hint <= scheduled && scheduled >= 0 && got != scheduled {
			t.Fatalf("a hint of %d changed the delay %d to %d", hint, scheduled, got)
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"3", "-1", "99999999999999999999", "Sun, 08 Mar 2026 12:00:03 GMT", "Sunday, 08-Mar-26 12:00:03 GMT", "Sun Mar  8 12:00:03 2026"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		hint, ok := schedule.ParseRetryAfter(header, now)
		if hint < 0 || hint > schedule.MaxRetryAfter || !ok && hint != 0 {
			t.Fatalf("ParseRetryAfter(%q) = %s, %v", header, hint, ok)
		}
	})
}
