package endpoints

import (
	"context"
	"sync"
	"time"
)

// renewEvery bounds how often callers of Renew make a mirror look.
const renewEvery = 50 * time.Millisecond

var _ interface{ Renew(context.Context) error } = (*Mirror)(nil)

// Renew has the mirror look for changes and returns when that is done. What was changed before the call is known
// then. Calls that come at the same time share a look. An error says that the store could not be asked, or ctx ended; a mirror whose Run is over
// never answers otherwise.
func (m *Mirror) Renew(ctx context.Context) error {
	next := m.asked.add()
	select {
	case <-next.done:
		return next.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewals are the calls of Renew that wait for a look that has not begun.
type renewals struct {
	mu   sync.Mutex
	next *renewal
	wake chan struct{}
}

// renewal is one look that was asked for.
type renewal struct {
	done chan struct{}
	err  error // set before done is closed
}

func newRenewals() *renewals { return &renewals{wake: make(chan struct{}, 1)} }

func (r *renewals) add() *renewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &renewal{done: make(chan struct{})}
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return r.next
}

// begin returns those that wait for the look that begins now; nil if there are none.
func (r *renewals) begin() *renewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next = nil
	if next != nil {
		select {
		case <-r.wake:
		default:
		}
	}
	return next
}

func (r *renewal) end(err error) {
	if r == nil {
		return
	}
	r.err = err
	close(r.done)
}
