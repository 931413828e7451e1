package brokerdlq

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// classify decides about one message.
func (s *scan) classify(ctx context.Context, f dlq.Filter, l *queue.Lease) error {
	e, named, mirror := entryOf(l, source(l.Queue))
	if !named && s.byID[e.ID] != nil { // never taken for a copy: nobody could tell
		e.Job += "." + rand.Text()
		e.ID = dlq.EntryID(e.Job, e.Run)
	}
	name := nameOf(e)
	if known := s.letters[name]; known != nil { // a copy, or the same message after its lease was lost
		if known.status == gone {
			s.copies++
			return s.ack(ctx, l)
		}
		known.leases = append(known.leases, l)
		known.mirror = known.mirror && mirror // the broker's own is no mere copy
		return nil
	}
	if s.byID[e.ID] != nil {
		e.ID = dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)
	}
	entry := &letter{Entry: e, leases: []*queue.Lease{l}, mirror: mirror}
	s.letters[name] = entry
	s.byID[e.ID] = entry
	s.looked++
	run, published := s.runs[e.Job]
	switch {
	case published && run <= e.Run, !s.end.IsZero() && e.StoredAt.After(s.end):
		s.later++
		entry.status = kept
	case !s.selects(f, e):
		s.passed++
		entry.status = kept
	default:
		entry.matches = true
		s.matched++
		s.order = append(s.order, entry)
	}
	return nil
}

// selects reports whether f selects e. An id selects every payload under it.
func (s *scan) selects(f dlq.Filter, e dlq.Entry) bool {
	if f.Matches(e) {
		return true
	}
	for _, id := range []string{dlq.EntryID(e.Job, e.Run), dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)} {
		if e.ID = id; f.Matches(e) {
			return true
		}
	}
	return false
}

// nameOf tells letters apart: one run of a job and its payload.
func nameOf(e dlq.Entry) string {
	sum := sha256.Sum256(e.Message.Body)
	return dlq.EntryID(e.Job, e.Run) + " " + string(sum[:])
}

// take hands out up to limit letters of at most maxBytes, and one that is larger.
func (s *scan) take(limit, maxBytes int) []*letter {
	n, size := 0, 0
	for n < min(limit, len(s.order)) {
		if size += len(s.order[n].Message.Body); maxBytes > 0 && size > maxBytes && n > 0 {
			break
		}
		s.order[n].status = handed
		n++
	}
	taken := s.order[:n:n]
	s.order = s.order[n:]
	slices.SortStableFunc(taken, func(a, b *letter) int { return a.StoredAt.Compare(b.StoredAt) })
	return taken
}

// remove acks all copies of letters, many at once, and returns one error for each. It may be called again after an error.
func (s *scan) remove(ctx context.Context, letters []*letter) []error {
	errs := make([]error, len(letters))
	parallel(len(letters), func(i int) {
		l := letters[i]
		l.status, l.Entry = gone, dlq.Entry{ID: l.ID} // a scan may go over many
		for len(l.leases) > 0 && errs[i] == nil {
			if errs[i] = s.ack(ctx, l.leases[0]); errs[i] == nil {
				l.leases = l.leases[1:]
			}
		}
	})
	return errs
}

// ack removes one message. One whose lease is lost comes again, in this scan or in another.
func (s *scan) ack(ctx context.Context, l *queue.Lease) error {
	err := l.Ack(ctx)
	if err == nil {
		s.removed()
	}
	switch {
	case err == nil, errors.Is(err, queue.ErrLeaseLost), errors.Is(err, queue.ErrSettled):
		s.dropLease(l)
		return nil
	}
	return fmt.Errorf("remove from %s: %w", l.Queue, unavailable(err))
}
