package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Handle is the driver's side of a lease. [Lease] calls it with all bookkeeping done: never twice for a settlement
// that succeeded, never after the deadline, never two calls at once.
type Handle interface {
	// Extend moves the broker's deadline to d from now. It returns [ErrLeaseLost] if the message is no longer held.
	Extend(ctx context.Context, d time.Duration) error
	// Settle carries out s. It returns [ErrLeaseLost] if the message is no longer held. After an error that wraps
	// [ErrUnavailable] it may be called again.
	Settle(ctx context.Context, s Settlement) error
}

// TxHandle is a Handle of a queue that lives in a database with other things: its settlement can join their transaction.
type TxHandle interface {
	Handle
	// SettleTx carries out s in tx, which is of the database's own type. It returns [ErrLeaseLost] if the message is no longer held.
	// It may be called more than once; only the run that is committed counts.
	SettleTx(tx any, s Settlement) error
	// Settled is called once after tx was committed.
	Settled(s Settlement)
}

// Settlement is what becomes of a leased message.
type Settlement struct {
	Action Action
	// Delay hides a retried message for at least this long. Only for ActionRetry.
	Delay time.Duration
	// Uncharged takes back the attempt that the broker counted at receive. Only for ActionRetry and ActionRelease,
	// only on brokers that count attempts. It may cost a broker a second message, so ask for it only where the broker's count
	// is the one that matters.
	Uncharged bool
}

// Action is the kind of a settlement.
type Action uint8

// The actions.
const (
	// ActionAck removes the message.
	ActionAck Action = iota + 1
	// ActionRetry hides the message for a delay.
	ActionRetry
	// ActionRelease makes the message visible at once.
	ActionRelease
)

// String returns the action's name.
func (a Action) String() string {
	switch a {
	case ActionAck:
		return "ack"
	case ActionRetry:
		return "retry"
	case ActionRelease:
		return "release"
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// Lease is a timed exclusive right to settle one message. Its methods are safe for concurrent use.
type Lease struct {
	Message

	// Queue is where the message was received.
	Queue string
	// ID is the broker's own id for the message.
	ID string
	// DeliveryCount is how often the broker has handed the message over, this time included; 0 if it does not know.
	// It is not the attempt.
	DeliveryCount int
	// Attempts is how many attempts the broker has counted for the message, this one included; 0 unless
	// [Capabilities.CountsAttempts].
	Attempts int
	// EnqueuedAt is when the broker accepted the message; zero if it does not know.
	EnqueuedAt time.Time
	// Group is the message's unit of order on a FIFO queue; empty on others.
	Group string
	// Moved says why the broker itself moved the message here, to a dead-letter queue, in its own word, for example "delivery_limit" or
	// "maxReceiveCount". Empty where it did not, or does not say.
	Moved string
	// Ceiling is when the lease ends at the latest, however often it is extended; zero if only extensions decide. The driver
	// sets it before it hands the lease out.
	Ceiling time.Time

	handle Handle

	call  chan struct{} // one place: one broker call at a time; guards handle and state. Waiting for it ends with ctx
	state leaseState

	mu       sync.Mutex // guards deadline, so that reading it never waits for a broker call
	deadline time.Time
}

type leaseState uint8

const (
	leaseHeld leaseState = iota
	leaseSettled
	leaseLost
)

// NewLease is for drivers. deadline must not be later than the broker's own: compute it from a time read before the
// receive call was sent.
func NewLease(m Message, h Handle, deadline time.Time) *Lease {
	return &Lease{Message: m, handle: h, call: make(chan struct{}, 1), deadline: deadline}
}

// Decorate puts wrap around the driver's handle, for faults and measurements between the lease and the driver. Call it
// before the lease is shared.
func (l *Lease) Decorate(wrap func(Handle) Handle) {
	l.call <- struct{}{}
	defer func() { <-l.call }()
	l.handle = wrap(l.handle)
}

// Deadline is when the lease ends unless it is extended.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Extend keeps the lease for d from now, but not past its Ceiling: see Deadline for what was granted. It returns
// [ErrLeaseLost] when it came too late and [ErrSettled] after a settlement. After any other error the old deadline holds and the call
// may be repeated.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	return l.do(ctx, func() error {
		start := time.Now()
		if left := l.Ceiling.Sub(start); !l.Ceiling.IsZero() && d > left {
			if d = left; d <= l.Deadline().Sub(start) {
				return nil // it lasts as long as it can already
			}
		}
		if err := l.handle.Extend(ctx, d); err != nil {
			return fmt.Errorf("extend lease: %w", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deadline = start.Add(d)
		return nil
	})
}

// Ack removes the message from its queue.
func (l *Lease) Ack(ctx context.Context) error {
	return l.Settle(ctx, Settlement{Action: ActionAck})
}

// Retry makes the message visible again after delay. uncharged takes back the attempt that the broker counted.
func (l *Lease) Retry(ctx context.Context, delay time.Duration, uncharged bool) error {
	return l.Settle(ctx, Settlement{Action: ActionRetry, Delay: delay, Uncharged: uncharged})
}

// Release makes the message visible again at once and takes back the attempt that the broker counted.
func (l *Lease) Release(ctx context.Context) error {
	return l.Settle(ctx, Settlement{Action: ActionRelease, Uncharged: true})
}

// Settle carries out s. After nil the lease is over. It returns [ErrLeaseLost] when it came too late and
// [ErrSettled] when the lease was settled before. After any other error the lease is still held and the call may
// be repeated until the deadline.
func (l *Lease) Settle(ctx context.Context, s Settlement) error {
	return l.do(ctx, func() error {
		if s.Delay < 0 {
			s.Delay = 0
		}
		if err := l.handle.Settle(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.Action, err)
		}
		l.state = leaseSettled
		return nil
	})
}

// SettleIn settles in a transaction of the database that the queue lives in, so that s and what else the transaction does are done together
// or not at all. commit begins the transaction, calls settle in it, and commits. SettleIn returns [errors.ErrUnsupported],
// before anything is done, if the queue lives in no such database; else as Settle does.
func (l *Lease) SettleIn(ctx context.Context, s Settlement, commit func(settle func(tx any) error) error) error {
	return l.do(ctx, func() error {
		h, ok := l.handle.(TxHandle)
		if !ok {
			return errors.ErrUnsupported
		}
		if err := commit(func(tx any) error { return h.SettleTx(tx, s) }); err != nil {
			return fmt.Errorf("%s: %w", s.Action, err)
		}
		l.state = leaseSettled
		h.Settled(s)
		return nil
	})
}

// do runs call while the lease is held, and records its loss.
func (l *Lease) do(ctx context.Context, call func() error) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer func() { <-l.call }()
	switch {
	case l.state == leaseSettled:
		return ErrSettled
	case l.state == leaseLost:
		return ErrLeaseLost
	case !time.Now().Before(l.Deadline()):
		l.state = leaseLost
		return ErrLeaseLost
	}
	err := call()
	if errors.Is(err, ErrLeaseLost) {
		l.state = leaseLost
	}
	return err
}

// enter waits for an earlier call on this lease to end, which may hang longer than ctx.
func (l *Lease) enter(ctx context.Context) error {
	select {
	case l.call <- struct{}{}: // even with a done ctx, so that the answer does not hang on chance
		return nil
	default:
	}
	select {
	case l.call <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for an earlier call on the lease: %w", ctx.Err())
	}
}
