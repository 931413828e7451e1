package rabbitmq

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// walk follows a delay through its steps, each of which ends late by what late returns, and returns how long it took in all.
// skew is how much the clock that looks at what is left is behind.
func walk(delay, skew time.Duration, late func() time.Duration) (took time.Duration, steps []time.Duration) {
	whole := roundDelay(delay)
	due := max(delay, whole-clockSlack)
	step := nextStep(whole)
	for single := step == whole; step > 0; {
		steps = append(steps, step)
		took += step + late()
		if single {
			break
		}
		step = stepAfter(step, due-took+skew)
	}
	return took, steps
}

// TestLadder: a delay is never cut short, made longer by no more than is documented, and makes few steps.
func TestLadder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]time.Duration{10 * time.Second, time.Hour, longestStep, 3 * 24 * time.Hour}).Draw(t, "most")
		delay := time.Duration(rapid.Int64Range(1, int64(most)).Draw(t, "delay"))
		var waited time.Duration
		took, steps := walk(delay, 0, func() time.Duration {
			late := time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "late"))
			waited += late
			return late
		})
		if took < delay {
			t.Errorf("%v is cut to %v", delay, took)
		}
		if limit := max(delay/10, time.Second) + waited; took-delay > limit {
			t.Errorf("%v becomes %v, %v longer; want %v at most", delay, took, took-delay, limit)
		}
		limit := 5
		if delay > longestStep {
			limit = int(delay/longestStep) + ladderSteps // the moments that steps are late add up
		}
		if n := len(steps); n > limit {
			t.Errorf("%v makes %d steps, want %d at most: %v", delay, n, limit, steps)
		}
		for _, step := range steps {
			if seconds := step / time.Second; step < shortestStep || step > longestStep || step%time.Second != 0 || seconds&(seconds-1) != 0 {
				t.Errorf("%v makes a step of %v", delay, step)
			}
		}
	})
	for delay, want := range map[time.Duration]time.Duration{
		1: time.Second, time.Second: time.Second, 5 * time.Second: 5 * time.Second, 7 * time.Second: 8 * time.Second,
		time.Minute: 64 * time.Second, time.Hour: time.Hour, 1<<63 - 1: mostDelay,
	} {
		if got := roundDelay(delay); got != want && delay < 1<<62 || got < want {
			t.Errorf("%v is rounded to %v, want %v", delay, got, want)
		}
	}
}

// TestLadderWithWrongClocks: a clock that is behind makes a delay twice as long at most, and one that is ahead ends it after its first step.
func TestLadderWithWrongClocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64Range(1, int64(longestStep)).Draw(t, "delay"))
		skew := time.Duration(rapid.Int64Range(-int64(24*time.Hour), int64(24*time.Hour)).Draw(t, "skew"))
		took, _ := walk(delay, skew, func() time.Duration { return time.Millisecond })
		whole := roundDelay(delay)
		if took > 2*whole+time.Second || took < whole/2 {
			t.Errorf("%v takes %v with a clock that is %v behind", delay, took, skew)
		}
	})
}

// TestStepsOfADelay pins what docs/rabbitmq.md says of how many steps there are.
func TestStepsOfADelay(t *testing.T) {
	t.Parallel()
	most, sum, n := 0, 0, 0
	for delay := time.Second; delay <= longestStep; delay += time.Second {
		_, steps := walk(delay, 0, func() time.Duration { return time.Millisecond })
		most, sum, n = max(most, len(steps)), sum+len(steps), n+1
	}
	if mean := float64(sum) / float64(n); most > 5 || mean > 3 {
		t.Errorf("%d steps at most and %.2f on average, want 5 and 3", most, mean)
	} else {
		t.Logf("%d steps at most, %.2f on average", most, mean)
	}
}
