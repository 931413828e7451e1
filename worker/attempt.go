package worker

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
)

// attempt is one delivery on its way through the worker. Its goroutine owns it; what others share with it is in keepalive and running.
type attempt struct {
	w        *Worker
	lease    *queue.Lease
	queue    *queueRunner
	slot     *slot
	job      *Job
	kind     *kind // nil until the kind is known
	received time.Time

	attemptBase int
	claimHandle idempotency.Handle // the claim; zero Token if none
	history     []idempotency.Attempt
	idConflict  bool // another job of this id, with another payload, came first
	acquired    bool // a place in the kind's bulkhead is taken
	permit      pools.Permit
	ctx         jobContext    // the handler's
	timeout     time.Duration // how long the handler may run
	started     time.Time     // when the handler started; zero if it did not
	handled     time.Duration
	abandoned   bool // the handler did not return; it keeps its slot and that of the bulkhead until it does
	tx          handlerTx
	committed   bool // the handler's transaction was, and the claim is completed with it
	keepalive   keepalive
	running     runningHandler
}

// run is the whole life of one lease, top to bottom. Each guard answers with a verdict when the job goes no further; the handler's error
// becomes one by classify. Then finish releases and settles it. One other settlement is in decodePayload, for code of
// the program that ends its goroutine.
//
//nolint:contextcheck // stop only ends the waiting for a start: handlers and settlements have contexts that outlive it
func (a *attempt) run(stop context.Context, s *slot) {
	defer func() {
		if !a.abandoned { // else giveUp removes it, once it is settled
			a.w.heartbeat.remove(a)
		}
	}()
	a.slot = s
	if v, done := a.guard(stop); done {
		a.finish(a.recheckDead(v))
		return
	}
	a.handle()
}

// guards take the job from bytes to the start of its handler, in this order. Each returns true with a verdict to go no further.
var guards = [...]func(*attempt, context.Context) (verdict, bool){
	(*attempt).decode,    // too large, undecodable, unknown kind
	(*attempt).checkDead, // dead already, and waiting at the head of its group
	(*attempt).checkDue,  // not due yet, expired
	(*attempt).peek,      // breaker, limits or pool say no; asked without taking anything
	(*attempt).acquire,   // a place in the kind's bulkhead, in its wait queue if need be
	(*attempt).claim,     // duplicate, busy elsewhere, out of attempts; charges the attempt
	(*attempt).admit,     // destination permit, rate, budget and breaker, all or nothing
}

func (a *attempt) guard(stop context.Context) (verdict, bool) {
	for _, step := range &guards {
		if stop.Err() != nil {
			return verdict{outcome: OutcomeInterrupted, err: ErrStopping}, true
		}
		if v, done := step(a, stop); done {
			return v, true
		}
	}
	return verdict{}, false
}

// finish carries out the verdict.
func (a *attempt) finish(v verdict) {
	a.release(v)
	a.settle(v)
}

// release gives back what admission took and tells the destination's breaker how the attempt went.
func (a *attempt) release(v verdict) {
	now := time.Now()
	if a.started.IsZero() {
		v.breaker = breaker.OutcomeIgnored
	} else {
		a.recordOutcome(&v, now)
	}
	if v.throttle > 0 {
		a.w.destinations.Throttle(a.job.Destination, now, now.Add(v.throttle))
	}
	a.permit.Done(now, v.breaker)
	if a.acquired && !a.abandoned {
		a.kind.pool.released(now, a.handled)
		a.kind.pool.Release()
	}
}

// recordOutcome tells those who learn from it how an attempt went that ran. What says something of another destination is not left for the job's own.
func (a *attempt) recordOutcome(v *verdict, now time.Time) {
	if a.acquired {
		recorded := v.breaker
		if v.throttle > 0 && recorded == breaker.OutcomeIgnored {
			recorded = breaker.OutcomeSlow // asked to slow down
		}
		a.kind.pool.record(a.started, now, recorded)
	}
	if a.kind.timeout != nil {
		a.kind.timeout.Record(a.handled, v.breaker)
	}
	if v.destination != "" && v.destination != a.job.Destination {
		a.w.destinations.Record(now, pools.Request{Destination: v.destination, Places: a.w.places(a.kind)}, v.breaker)
		v.breaker = breaker.OutcomeIgnored
	}
}
