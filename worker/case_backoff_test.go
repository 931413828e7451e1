package worker_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// returns lets n jobs fail in the same instant and tells after what time each came back, sorted.
func returns(t *testing.T, n int, backoff schedule.Backoff) []time.Duration {
	t.Helper()
	var after []time.Duration
	cfg := jobtest.Config{Unkeyed: true, Worker: worker.Config{Concurrency: n}}
	inBench(t, cfg, worker.KindConfig{MaxAttempts: 2, Backoff: backoff}, func(_ context.Context, job *worker.Job) error {
		if job.Attempt == 1 {
			return errBoom
		}
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		jobs := make([]worker.NewJob, n)
		for i := range jobs {
			jobs[i].Kind = "job"
		}
		enqueued := b.Client().EnqueueMany(t.Context(), jobs)
		b.Drain()
		for _, r := range enqueued {
			if times := b.AttemptTimes(r.ID); len(times) == 2 {
				after = append(after, times[1].Sub(times[0]))
			}
		}
	})
	if len(after) != n {
		t.Fatalf("%d of %d jobs came back", len(after), n)
	}
	slices.Sort(after)
	return after
}

// Jobs that failed together must not come back together.
func TestFailedJobsComeBackSpread(t *testing.T) {
	t.Parallel()
	const delay = 10 * time.Second
	const jobs = 150
	factor, err := schedule.JitterFactor(0.8, 1.2)
	if err != nil {
		t.Fatal(err)
	}
	for name, jitter := range map[string]schedule.Jitter{"20 percent": factor, "full": schedule.JitterFull} {
		t.Run(name, func(t *testing.T) {
			backoff, err := schedule.Constant(delay, jitter)
			if err != nil {
				backoff, err = schedule.Exponential(delay, 2, time.Hour, jitter)
			}
			if err != nil {
				t.Fatal(err)
			}
			low, high := backoff.Shortest(1), backoff.Longest(1)
			after := returns(t, jobs, backoff)
			other := returns(t, jobs, backoff) // a second process, started in the same instant
			if after[0] < low || after[jobs-1] > high+10*time.Millisecond {
				t.Errorf("back between %s and %s, allowed is %s to %s", after[0], after[jobs-1], low, high)
			}
			if spread := after[jobs-1] - after[0]; spread < (high-low)*8/10 {
				t.Errorf("spread over %s of %s", spread, high-low)
			}
			if slices.Equal(after, other) {
				t.Error("two processes drew the same series")
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		after := returns(t, jobs, every(t, delay))
		if after[0] != delay || after[jobs-1] > delay+10*time.Millisecond {
			t.Errorf("back between %s and %s, want exactly %s", after[0], after[jobs-1], delay)
		}
	})
}

// What the other side asks for is the least, jitter never cuts it, and nonsense changes nothing.
func TestRetryAfterIsNeverUndercut(t *testing.T) {
	t.Parallel()
	backoff, err := schedule.Constant(time.Second, must(schedule.JitterFactor(0.8, 1.2)))
	if err != nil {
		t.Fatal(err)
	}
	soon := func(now time.Time) string { return now.UTC().Add(3 * time.Second).Format(http.TimeFormat) }
	past := func(now time.Time) string { return now.UTC().Add(-time.Hour).Format(http.TimeFormat) }
	fixed := func(text string) func(time.Time) string { return func(time.Time) string { return text } }
	for name, c := range map[string]struct {
		header    func(time.Time) string
		low, high time.Duration
	}{
		"seconds":  {fixed("3"), 3 * time.Second, 3600 * time.Millisecond},
		"date":     {soon, 2 * time.Second, 3600 * time.Millisecond}, // dates have whole seconds
		"zero":     {fixed("0"), 800 * time.Millisecond, 1200 * time.Millisecond},
		"negative": {fixed("-5"), 800 * time.Millisecond, 1200 * time.Millisecond},
		"text":     {fixed("abc"), 800 * time.Millisecond, 1200 * time.Millisecond},
		"past":     {past, 800 * time.Millisecond, 1200 * time.Millisecond},
		"huge":     {fixed("99999999"), schedule.MaxRetryAfter, schedule.MaxRetryAfter * 12 / 10},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := jobtest.Config{Worker: worker.Config{Hold: worker.HoldConfig{Interval: time.Hour}}} // many virtual hours, nothing held
			inBench(t, cfg, worker.KindConfig{MaxAttempts: 10, Backoff: backoff}, func(_ context.Context, job *worker.Job) error {
				if job.Attempt > 5 {
					return nil
				}
				hint, _ := schedule.ParseRetryAfter(c.header(time.Now()), time.Now())
				return worker.RetryAfter(hint, errors.New("too many requests"))
			}, func(t *testing.T, b *jobtest.Bench) {
				id := b.Enqueue(worker.NewJob{Kind: "job"})
				b.Drain()
				called := b.AttemptTimes(id)
				for i := 1; i < len(called); i++ {
					if wait := called[i].Sub(called[i-1]); wait < c.low || wait > c.high+10*time.Millisecond {
						t.Errorf("attempt %d came after %s, want %s to %s", i+1, wait, c.low, c.high)
					}
				}
				if len(called) != 6 {
					t.Errorf("%d calls: %s", len(called), b.Where(id))
				}
			})
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
