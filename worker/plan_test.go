package worker

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/schedule"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	cfg := KindConfig{MaxAttempts: 3}.withDefaults()
	err := errors.New("boom")
	for _, c := range []struct {
		name    string
		v       verdict
		attempt int
		want    plan
	}{
		{"success is acked", verdict{outcome: OutcomeSucceeded}, 1, plan{settlement: SettlementAck}},
		{"duplicate is acked", verdict{outcome: OutcomeDuplicate}, 0, plan{settlement: SettlementAck}},
		{"rejected dies", verdict{outcome: OutcomeRejected, cause: dlq.CauseRejected, err: err}, 1, plan{settlement: SettlementDeadLetter, cause: dlq.CauseRejected, state: dlq.StateDead}},
		{"last failure dies", verdict{outcome: OutcomeFailed, cause: dlq.CauseTimeout, err: err}, 3, plan{settlement: SettlementDeadLetter, cause: dlq.CauseTimeout, state: dlq.StateDead}},
		{"interrupted is released uncharged", verdict{outcome: OutcomeInterrupted, err: err}, 3, plan{settlement: SettlementRelease, uncharged: true}},
		{"lost is left alone", verdict{outcome: OutcomeInterrupted, lost: true, err: err}, 3, plan{settlement: SettlementLeave}},
		{"deferred waits uncharged", verdict{outcome: OutcomeDeferred, after: time.Minute}, 3, plan{settlement: SettlementRetry, delay: time.Minute, uncharged: true}},
		{"held leaves the queue", verdict{outcome: OutcomeDeferred, hold: true}, 0, plan{settlement: SettlementHold, uncharged: true, cause: dlq.CauseDestinationOpen, state: dlq.StateHeld}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := makePlan(c.v, cfg, c.attempt); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestPlanWithABackoffOfTheError(t *testing.T) {
	t.Parallel()
	hour, err := schedule.Constant(time.Hour, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	cfg := KindConfig{MaxAttempts: 3}.withDefaults()
	stated := &Error{Outcome: OutcomeFailed, Err: errors.New("boom"), Backoff: hour}
	if got, want := makePlan(classify(stated, nil), cfg, 1), (plan{settlement: SettlementRetry, delay: time.Hour}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Whatever a handler asks for, a failed attempt below the limit is retried, no sooner than asked, and never for free.
func TestPlanOfAFailureBelowTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(2, math.MaxInt32).Draw(t, "max")
		attempt := rapid.IntRange(1, attempts-1).Draw(t, "attempt")
		after := time.Duration(rapid.Int64Range(0, int64(12*time.Hour)).Draw(t, "after"))
		cfg := KindConfig{MaxAttempts: attempts, Backoff: schedule.DefaultBackoff}.withDefaults()
		p := makePlan(verdict{outcome: OutcomeFailed, after: after, cause: dlq.CauseExhausted}, cfg, attempt)
		if p.settlement != SettlementRetry || p.uncharged || p.delay < after || p.delay < 0 {
			t.Fatalf("got %+v for attempt %d of %d, after %s", p, attempt, attempts, after)
		}
	})
}
