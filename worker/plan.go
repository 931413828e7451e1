package worker

import (
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/schedule"
)

// plan says how a delivery is settled. It is made by makePlan alone and carried out by settle alone.
type plan struct {
	settlement Settlement
	// delay hides the message; only for Retry.
	delay time.Duration
	// uncharged gives the attempt back.
	uncharged bool
	// cause and state of the entry to store; only for SettlementDeadLetter and Hold.
	cause dlq.Cause
	state dlq.State
	// block keeps the message of a SettlementDeadLetter at the head of its group, hidden for delay.
	block bool
}

// makePlan decides what becomes of a delivery. It is pure but for the jitter's randomness. attempt is 0 if none was charged.
func makePlan(v verdict, cfg KindConfig, attempt int) plan {
	if v.lost {
		return plan{settlement: SettlementLeave}
	}
	switch v.outcome {
	case OutcomeSucceeded, OutcomeDuplicate:
		return plan{settlement: SettlementAck}
	case OutcomeRejected:
		return plan{settlement: SettlementDeadLetter, cause: v.cause, state: dlq.StateDead}
	case OutcomeInterrupted:
		return plan{settlement: SettlementRelease, uncharged: true}
	case OutcomeDeferred:
		if v.hold {
			return plan{settlement: SettlementHold, uncharged: true, cause: dlq.CauseDestinationOpen, state: dlq.StateHeld}
		}
		return plan{settlement: SettlementRetry, delay: v.after, uncharged: true}
	}
	if attempt >= cfg.MaxAttempts {
		return plan{settlement: SettlementDeadLetter, cause: v.cause, state: dlq.StateDead}
	}
	backoff := cfg.Backoff
	if !v.backoff.IsZero() {
		backoff = v.backoff
	}
	delay := backoff.Delay(attempt, 0, nil)
	return plan{settlement: SettlementRetry, delay: schedule.Merge(delay, v.after, nil)}
}
