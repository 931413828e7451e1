package queuetest

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Op is a call into which a fault can be put.
type Op uint8

// The calls.
const (
	// OpPublish is one message of a Publish call.
	OpPublish Op = iota + 1
	// OpReceive is one Receive call. Point has no message.
	OpReceive
	// OpDeliver is one message that a Receive call returned.
	OpDeliver
	// OpExtend is an extension of a lease.
	OpExtend
	// OpSettle is a settlement of a lease.
	OpSettle
)

// String returns the call's name.
func (o Op) String() string {
	names := [...]string{"none", "publish", "receive", "deliver", "extend", "settle"}
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// Point is one call that may be struck.
type Point struct {
	Op    Op
	Queue string
	// N counts the calls of this Op on the broker, from 1.
	N int
	// Message is the message concerned; empty for OpReceive.
	Message queue.Message
	// Settlement is what OpSettle asks for.
	Settlement queue.Settlement
}

// Fault is what happens at a point. The zero value is no fault. Fields may be combined: Delay comes first, then
// Before, then the real call, then the rest.
type Fault struct {
	// Delay holds the call for so long, or until its context ends, which is then its error.
	Delay time.Duration
	// Before is returned in place of the call. For OpDeliver the message is given back, and Before is the Receive call's
	// error if no other message is left.
	Before error
	// After is returned although the call succeeded: a lost confirmation. Not for OpDeliver.
	After error
	// Duplicate doubles the message: OpPublish stores it twice; OpDeliver hands it over once more at the subscription's
	// next Receive, as a lease of its own on the same message.
	Duplicate bool
	// Expire takes the lease away, for OpDeliver, OpExtend and OpSettle: the message becomes visible at once with its
	// attempt spent, and this call (for OpDeliver the next one) and all later ones on the lease return
	// [queue.ErrLeaseLost].
	Expire bool
}

// Plan decides what happens at a point. It is called for each point in the order in which calls arrive, never twice at
// once, and must not call the broker.
type Plan func(Point) Fault

// Script strikes the first calls of op with faults, one after the other; all later calls go through.
func Script(op Op, faults ...Fault) Plan {
	return func(p Point) Fault {
		if p.Op != op || p.N > len(faults) {
			return Fault{}
		}
		return faults[p.N-1]
	}
}

// When strikes every call of op for which match returns true. A nil match is always true.
func When(op Op, match func(Point) bool, f Fault) Plan {
	return func(p Point) Fault {
		if p.Op != op || match != nil && !match(p) {
			return Fault{}
		}
		return f
	}
}

// Plans asks each plan in turn and takes the first fault.
func Plans(plans ...Plan) Plan {
	return func(p Point) Fault {
		for _, plan := range plans {
			if f := plan(p); f != (Fault{}) {
				return f
			}
		}
		return Fault{}
	}
}

// hold waits for d or until ctx ends.
func hold(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
