package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
)

// handle is one delivery: (id, delivery) fences it. It implements [queue.TxHandle].
type handle struct {
	sub          *subscription
	id, delivery int64
	due          int64 // when the lease ends, unix ms; guarded by sub.slots
}

// Extend implements [queue.Handle].
func (h *handle) Extend(ctx context.Context, d time.Duration) error {
	due, err := h.change(ctx, change{kind: extend, delay: d})
	if err != nil {
		return err
	}
	h.sub.slots.prolong(h, due)
	h.sub.line.note(due)
	return nil
}

// Settle implements [queue.Handle].
func (h *handle) Settle(ctx context.Context, s queue.Settlement) error {
	c, err := changeOf(s)
	if err != nil {
		return err
	}
	due, err := h.change(ctx, c)
	if err != nil {
		return err
	}
	h.settled(c, due)
	return nil
}

// SettleTx implements [queue.TxHandle] for the file's own transactions. Only an ack can join one.
func (h *handle) SettleTx(tx any, s queue.Settlement) error {
	own, ok := tx.(*sqlitefile.Tx)
	if !ok || s.Action != queue.ActionAck {
		return errors.ErrUnsupported
	}
	if h.sub.b.isClosed() {
		return queue.ErrClosed
	}
	w := changeWrite{change: change{kind: ack}, id: h.id, delivery: h.delivery}
	if err := w.run(own); err != nil {
		return err
	}
	if !w.held {
		return queue.ErrLeaseLost
	}
	return nil
}

// Settled implements [queue.TxHandle].
func (h *handle) Settled(queue.Settlement) { h.settled(change{kind: ack}, 0) }

func changeOf(s queue.Settlement) (change, error) {
	switch s.Action {
	case queue.ActionAck:
		return change{kind: ack}, nil
	case queue.ActionRetry:
		return change{kind: giveBack, delay: s.Delay, uncharged: s.Uncharged}, nil
	case queue.ActionRelease:
		return change{kind: giveBack, uncharged: s.Uncharged}, nil
	}
	return change{}, fmt.Errorf("unknown settlement %v", s.Action)
}

// settled frees the slot and wakes whoever can have the message now.
func (h *handle) settled(c change, due int64) {
	h.sub.slots.free(h)
	switch {
	case c.kind == ack:
	case due <= floorMilli(time.Now()):
		h.sub.line.wake(1)
	default:
		h.sub.line.note(due)
	}
}

// change carries c out and returns the message's new due time. If there is nothing to change, the lease is lost.
func (h *handle) change(ctx context.Context, c change) (due int64, err error) {
	b := h.sub.b
	if b.isClosed() {
		return 0, queue.ErrClosed
	}
	w := b.changes.Get().(*changeWrite)
	w.change, w.id, w.delivery = c, h.id, h.delivery
	err = b.file.Write(ctx, false, w.fn)
	due, held := w.due, w.held
	b.changes.Put(w)
	switch {
	case err != nil:
		return 0, translate(err)
	case !held:
		h.sub.slots.free(h)
		return 0, queue.ErrLeaseLost
	}
	return due, nil
}

// change is what is to become of a leased message.
type change struct {
	kind      changeKind
	delay     time.Duration // of the message, or the new lease
	uncharged bool
}

type changeKind uint8

const (
	ack changeKind = iota
	giveBack
	extend
)

// changeWrite is a change on its way through the writer. It is reused together with its closure.
type changeWrite struct {
	change
	id, delivery int64
	fn           func(*sqlitefile.Tx) error

	due  int64
	held bool
}

func newChangeWrite() any {
	w := &changeWrite{}
	w.fn = w.run
	return w
}

func (w *changeWrite) run(tx *sqlitefile.Tx) error {
	now := time.Now()
	if w.due = floorMilli(now); w.delay > 0 {
		w.due = ceilMilli(now.Add(w.delay))
	}
	var res sqlitefile.Result
	var err error
	switch w.kind {
	case ack:
		res, err = tx.Exec(sqlAck, w.id, w.delivery, floorMilli(now))
	case giveBack:
		charge := 0
		if w.uncharged {
			charge = 1
		}
		res, err = tx.Exec(sqlReturn, w.due, charge, w.id, w.delivery, floorMilli(now))
	case extend:
		res, err = tx.Exec(sqlExtend, w.due, w.id, w.delivery, floorMilli(now))
	}
	w.held = res.Changed == 1
	return err
}
