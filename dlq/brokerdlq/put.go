package brokerdlq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// ErrNoHold means that a job was to be held, which takes a store.
var ErrNoHold = errors.New("held jobs need a dead-letter store, and dead letters live in the broker here: " +
	"use dlq.backend: store, or hold.after: 0s and hold.backlog: 0")

// move is an entry on its way to a dead-letter queue.
type move struct {
	entry dlq.Entry
	index int // in the call
	level level
	// pack says that the broker refused the message's own headers beside ours, so that they go into it.
	pack   bool
	mirror bool
	// created says that its queue was missing and had to be made.
	created bool
}

// Put moves jobs to the dead-letter queues of their queues, creating those that are missing, and returns one error for each. A nil error
// means that the broker confirmed the message. Putting again after an error may leave a second copy. Held entries are refused with [ErrNoHold].
func (q *Queues) Put(ctx context.Context, entries []dlq.Entry) []error {
	return q.put(ctx, entries, false)
}

// put is Put, of copies if mirror is set. A copy that has no room for its mark is refused: nobody could tell it from a dead letter.
func (q *Queues) put(ctx context.Context, entries []dlq.Entry, mirror bool) []error {
	errs := make([]error, len(entries))
	byQueue := map[string][]move{}
	for i, e := range entries {
		e, err := e.ForStore(q.cfg.Now())
		switch {
		case err != nil:
		case e.State == dlq.StateHeld:
			err = fmt.Errorf("hold %s: %w", e.ID, ErrNoHold)
		case e.Queue == "":
			err = fmt.Errorf("dead letter %s: the queue that it came from is missing", e.ID)
		case mirror && unmarked(e):
			err = fmt.Errorf("copy of dead letter %s: %w", e.ID, errNoMark)
		}
		if errs[i] = err; err != nil {
			continue
		}
		e.Message, _, _ = original(e.Message) // of an earlier death, if the message was moved back by hand
		byQueue[e.Queue] = append(byQueue[e.Queue], move{entry: e, index: i, mirror: mirror})
	}
	for _, name := range slices.Sorted(maps.Keys(byQueue)) {
		q.putIn(ctx, name, byQueue[name], errs)
	}
	return errs
}

// errNoMark means that a copy would not be known as one.
var errNoMark = errors.New("its metadata takes more room than there is")

func unmarked(e dlq.Entry) bool {
	_, at := encode(e, levelCause, false, true)
	return at == levelNone
}

// putIn moves jobs of one queue. Each round publishes what the last one had refused, with less of its metadata.
func (q *Queues) putIn(ctx context.Context, name string, moves []move, errs []error) {
	for len(moves) > 0 {
		pubs := make([]queue.Publication, len(moves))
		for i := range moves {
			pubs[i] = moves[i].publication(q.cfg.Broker.Capabilities(queue.DLQ(name)).FIFO)
		}
		var again []move
		missing := false
		for i, r := range q.cfg.Broker.Publish(ctx, queue.DLQ(name), pubs) {
			m := moves[i]
			switch {
			case r.Err == nil:
				errs[m.index] = nil
				continue
			case errors.Is(r.Err, queue.ErrQueueNotFound) && !m.created:
				missing, m.created = true, true
				again = append(again, m)
			case m.less(r.Err):
				again = append(again, m)
			}
			errs[m.index] = fmt.Errorf("move %s to %s: %w", m.entry.ID, queue.DLQ(name), unavailable(r.Err))
		}
		if missing {
			if err := q.cfg.Broker.CreateQueue(ctx, queue.DLQ(name)); err != nil {
				for _, m := range again {
					errs[m.index] = errors.Join(errs[m.index], unavailable(err))
				}
				return
			}
		}
		moves = again
	}
}

// publication returns the message as it goes to the dead-letter queue. On a FIFO queue each dead letter is a group of its own, so that one
// that a scan keeps does not hide the others; its own group is in the metadata. Its dedup id is new at each call: a copy is harmless, a
// dead letter that the broker drops is lost.
func (m *move) publication(fifo bool) queue.Publication {
	e := m.entry
	text, level := encode(e, m.level, m.pack, m.mirror)
	m.level = level
	p := queue.Publication{Message: e.Message, DedupID: "dead." + rand.Text()}
	if fifo {
		p.Group = dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)
	}
	if level == levelNone {
		p.Group = e.Group
		return p
	}
	if m.pack {
		p.Headers = map[string]string{HeaderDead: text}
		return p
	}
	p.Headers = maps.Clone(e.Message.Headers)
	p.Headers = with(p.Headers, HeaderDead, text)
	return p
}

// less makes the move ask for less after the broker's refusal, and reports whether that may help.
func (m *move) less(err error) bool {
	if m.level == levelNone || m.mirror && m.level == levelCause || temporary(err) || errors.Is(err, queue.ErrQueueNotFound) {
		return false
	}
	if errors.Is(err, queue.ErrTooLarge) || m.pack {
		m.level++
		m.pack = m.pack && m.level < levelNone
		return true
	}
	m.pack = true // it took the message before: one header more is too many, or one is of bytes that it takes in another way only
	return true
}

// temporary reports whether err is the broker's or the caller's state and not the message's fault.
func temporary(err error) bool {
	return errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrClosed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if errors.Is(err, queue.ErrUnavailable) {
		return fmt.Errorf("%w: %w", dlq.ErrUnavailable, err)
	}
	return err
}
