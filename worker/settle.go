package worker

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// settle ends the lease, and the claim unless commit has completed it. The order of effects is: entry stored, claim ended, lease settled; the last two
// together where they share a database. A crash between any two leaves a state from which the redelivered message arrives at the same end.
//
// It has a context of its own, since the handler's may be over, and repeats what is unavailable until the stop is over, while the heartbeat
// keeps lease and claim.
func (a *attempt) settle(v verdict) {
	p := a.plan(v)
	err := a.store(v, p)
	if err == nil {
		err = a.end(v, p)
	}
	a.report(v, p, err)
}

// end ends claim and lease, in one transaction where both live in one database. Where the handler's transaction has completed the claim, only the
// lease is left.
func (a *attempt) end(v verdict, p plan) error {
	if a.committed {
		return a.endLease(p)
	}
	if a.w.sharedStore != nil && p.settlement == SettlementAck && a.claimHandle.Token != 0 {
		err := a.completeAndAck()
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, queue.ErrLeaseLost) {
			return err
		}
		// A lease that was lost leaves the completion to be stored by itself.
	}
	if err := a.endClaim(v, p); err != nil {
		return err
	}
	return a.endLease(p)
}

func (a *attempt) plan(v verdict) plan {
	var p plan
	if a.kind == nil {
		p = makePlan(v, KindConfig{}, 0)
	} else {
		cfg := a.kind.config
		cfg.MaxAttempts = a.job.MaxAttempts
		p = makePlan(v, cfg, a.job.Attempt)
		if p.settlement == SettlementRetry && v.reason != ReasonBlocked {
			p.delay = min(p.delay, a.remainingAge())
		}
	}
	if p.settlement == SettlementDeadLetter && a.queue.blocks() {
		p.block, p.delay = true, minBlocked
	}
	return p
}

// remainingAge is how long it takes until the job has expired by its kind's max age. Put back for longer it would only be reported the later.
func (a *attempt) remainingAge() time.Duration {
	return max(time.Until(a.job.dueAt().Add(a.kind.config.MaxAge)), 0) + time.Second
}

// store keeps what leaves the queue unfinished.
func (a *attempt) store(v verdict, p plan) error {
	if p.settlement != SettlementDeadLetter && p.settlement != SettlementHold {
		return nil
	}
	entry := a.entry(v, p)
	return a.persist(func(ctx context.Context) error {
		return a.w.cfg.DeadLetters.Put(ctx, []dlq.Entry{entry})[0]
	})
}

// completeAndAck completes the claim and acks the lease in one transaction.
func (a *attempt) completeAndAck() error {
	return a.persist(func(ctx context.Context) error {
		return a.lease.SettleIn(ctx, queue.Settlement{Action: queue.ActionAck}, func(settle func(tx any) error) error {
			return a.w.sharedStore.InTx(ctx, a.completion(), func(_ context.Context, tx any) error { return settle(tx) })
		})
	})
}

func (a *attempt) completion() idempotency.Completion {
	return idempotency.Completion{Handle: a.claimHandle, Result: idempotency.NewResult(a.job.result), Retention: a.w.cfg.KeyRetention}
}

// endClaim writes the attempt's end to the ledger.
func (a *attempt) endClaim(v verdict, p plan) error {
	if a.claimHandle.Token == 0 || p.settlement == SettlementLeave {
		return nil
	}
	store := a.w.cfg.Store
	return a.persist(func(ctx context.Context) error {
		switch {
		case p.settlement == SettlementAck:
			return store.Complete(ctx, []idempotency.Completion{a.completion()})[0]
		case p.uncharged:
			return store.Abandon(ctx, []idempotency.Abandonment{{Handle: a.claimHandle, Delay: p.delay}})[0]
		}
		return store.Fail(ctx, []idempotency.Failure{{
			Handle: a.claimHandle, Attempt: a.ledgerAttempt(v), Delay: p.delay, Final: p.settlement == SettlementDeadLetter, Retention: a.w.cfg.KeyRetention,
		}})[0]
	})
}

// endLease tells the broker.
func (a *attempt) endLease(p plan) error {
	// A keyed job's attempts are counted by the ledger: what the broker counts may cost it a second message to take back.
	s := queue.Settlement{Uncharged: p.uncharged && (a.kind == nil || !a.kind.keyed), Delay: p.delay}
	switch {
	case p.settlement == SettlementLeave:
		return nil
	case p.settlement == SettlementAck, p.settlement == SettlementHold, p.settlement == SettlementDeadLetter && !p.block:
		s = queue.Settlement{Action: queue.ActionAck}
	case p.settlement == SettlementRelease:
		s.Action = queue.ActionRelease
		select {
		case <-a.w.unsubscribed:
		case <-a.w.settling.parent.Done():
		}
	default:
		s.Action = queue.ActionRetry
		if longest := a.queue.limits.MaxRetryDelay; longest > 0 { // the ledger's not_before decides
			s.Delay = min(s.Delay, longest)
		}
	}
	return a.persist(func(ctx context.Context) error { return a.lease.Settle(ctx, s) })
}

// persist repeats call while what it asks is unavailable. Giving up loses nothing: the lease runs out and the message comes again.
func (a *attempt) persist(call func(context.Context) error) error {
	delay := 50 * time.Millisecond
	for {
		err := call(a.w.settling.context())
		if !unavailable(err) || !pause.For(a.w.settling.parent, jitter(delay)) {
			return err
		}
		delay = min(2*delay, 2*time.Second)
	}
}

func unavailable(err error) bool {
	return errors.Is(err, queue.ErrUnavailable) || errors.Is(err, idempotency.ErrUnavailable) || errors.Is(err, dlq.ErrUnavailable) ||
		errors.Is(err, context.DeadlineExceeded)
}

// report tells observers, and logs what an operator should know.
func (a *attempt) report(v verdict, p plan, err error) {
	now := time.Now()
	e := &Settled{
		Job: a.job, Queue: a.lease.Queue, Kind: unknownKind, Outcome: v.outcome, Settlement: p.settlement, Reason: v.reason, Cause: p.cause,
		Delay: p.delay, Handle: a.handled, Total: now.Sub(a.received), Err: v.err, SettleErr: err, Result: v.result,
	}
	if a.kind != nil {
		e.Kind = a.kind.name
	}
	if v.outcome == OutcomeSucceeded {
		e.Latency = now.Sub(a.job.dueAt())
		e.ResultOmitted = a.claimHandle.Token != 0 && len(a.job.result) > idempotency.MaxResult
	}
	a.w.observe(e)
}
