package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// TestJobsThatFailTogetherComeBackApart has 500 jobs fail in the same instant.
func TestJobsThatFailTogetherComeBackApart(t *testing.T) {
	t.Parallel()
	const delay = 10 * time.Second
	around, err := schedule.JitterFactor(0.8, 1.2)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		jitter      schedule.Jitter
		floor, ceil time.Duration
	}{
		{around, 8 * time.Second, 12 * time.Second},
		{schedule.JitterFull, time.Second, 10 * time.Second},
		{schedule.JitterEqual, 5 * time.Second, 10 * time.Second},
		{schedule.JitterNone, delay, delay},
	}
	for _, tt := range tests {
		t.Run(tt.jitter.String(), func(t *testing.T) {
			t.Parallel()
			p, err := schedule.Constant(delay, tt.jitter)
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Duration
			for range 500 {
				got = append(got, p.Delay(1, 0, nil))
			}
			low, high := slices.Min(got), slices.Max(got)
			if low < tt.floor || high > tt.ceil {
				t.Errorf("returns between %s and %s, want %s to %s", low, high, tt.floor, tt.ceil)
			}
			if spread, window := high-low, tt.ceil-tt.floor; spread*10 < window*8 {
				t.Errorf("returns spread over %s of a window of %s", spread, window)
			}
		})
	}
}

// TestTwoProcessesDrawDifferentSeries starts this binary twice.
func TestTwoProcessesDrawDifferentSeries(t *testing.T) {
	const child = "SCHEDULE_TEST_DRAW"
	if os.Getenv(child) != "" {
		var series []string
		for n := range 20 {
			series = append(series, schedule.DefaultBackoff.Delay(n+1, 0, nil).String())
		}
		fmt.Println("series " + strings.Join(series, " "))
		return
	}
	t.Parallel()
	draw := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcessesDrawDifferentSeries$")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("child: %v\n%s", err, out)
		}
		line, _, ok := strings.Cut(string(out), "\n")
		if !ok || !strings.HasPrefix(line, "series ") {
			t.Fatalf("child said %q", out)
		}
		return line
	}
	if a, b := draw(), draw(); a == b {
		t.Fatalf("both processes drew %s", a)
	}
}

func TestDecorrelatedFollowsThePreviousDelay(t *testing.T) {
	t.Parallel()
	p, err := schedule.Exponential(time.Second, 2, time.Minute, schedule.JitterDecorrelated)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	tests := []struct {
		name      string
		failed    int
		prev      time.Duration
		low, high time.Duration
	}{
		{"first", 1, 0, time.Second, 3 * time.Second},
		{"previous known", 2, 4 * time.Second, time.Second, 12 * time.Second},
		{"previous unknown: the curve's", 4, 0, time.Second, 12 * time.Second},
		{"near the limit", 9, 50 * time.Second, time.Second, time.Minute},
		{"previous beyond the limit", 9, time.Hour, time.Second, time.Minute},
		{"previous below the base", 3, time.Millisecond, time.Second, 3 * time.Second},
	}
	for _, tt := range tests {
		var got []time.Duration
		for range 500 {
			got = append(got, p.Delay(tt.failed, tt.prev, r))
		}
		low, high := slices.Min(got), slices.Max(got)
		if low < tt.low || high > tt.high || (high-low)*10 < (tt.high-tt.low)*9 {
			t.Errorf("%s: drew %s to %s, want nearly all of %s to %s", tt.name, low, high, tt.low, tt.high)
		}
	}
}
