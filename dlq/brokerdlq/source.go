package brokerdlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/queue"
)

var _ replay.Source = (*scan)(nil)

// Prepare searches for entries: see [replay.Source].
func (s *scan) Prepare(ctx context.Context, f dlq.Filter, limit int) error {
	return s.fill(ctx, f, limit)
}

// Reserve hands out what Prepare has found.
func (s *scan) Reserve(_ context.Context, _ dlq.Filter, r dlq.Reservation) ([]dlq.Entry, error) {
	return entries(s.take(r.Limit, r.MaxBytes)), nil
}

func entries(letters []*letter) []dlq.Entry {
	list := make([]dlq.Entry, len(letters))
	for i, l := range letters {
		list[i] = l.Entry
	}
	return list
}

// Resolve removes what was published. The rest stays leased, and close gives it back.
func (s *scan) Resolve(ctx context.Context, _ string, rs []dlq.Resolution) []error {
	errs := make([]error, len(rs))
	var published []*letter
	var index []int
	for i, r := range rs {
		l := s.byID[r.ID]
		if r.To != dlq.StateReplayed {
			l.status = kept
			continue
		}
		if l.status != gone {
			s.runs[l.Job] = l.Run + 1
		}
		published, index = append(published, l), append(index, i)
	}
	for i, err := range s.remove(ctx, published) {
		errs[index[i]] = err
	}
	return errs
}

// Count returns how many letters match. What the scan has not met yet is estimated by the broker's count, which knows no filter.
func (s *scan) Count(ctx context.Context, _ dlq.Filter) (int, error) {
	n := 0
	for _, l := range s.byID {
		if l.matches && l.status != gone {
			n++
		}
	}
	for _, name := range s.queue {
		depth, err := s.cfg.Broker.Depth(ctx, queue.DLQ(name))
		if err != nil && !errors.Is(err, queue.ErrQueueNotFound) {
			return 0, fmt.Errorf("count dead letters of %s: %w", name, err)
		}
		n += int(depth.Ready.N)
	}
	return n, nil
}

// List returns the next letters, in the order of the queue; they stay leased. next is only a sign that there are more: the scan knows where it
// is. It ends where no more can be kept.
func (s *scan) List(ctx context.Context, f dlq.Filter, _ string, limit int) (list []dlq.Entry, next string, err error) {
	switch err := s.fill(ctx, f, limit); {
	case errors.Is(err, ErrTooMany):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	if list = entries(s.take(limit, 0)); len(s.queue) > 0 || len(s.order) > 0 {
		next = "more"
	}
	return list, next, nil
}

// Get returns a letter that List has returned.
func (s *scan) Get(_ context.Context, id string) (dlq.Entry, error) {
	l := s.byID[id]
	if l == nil {
		return dlq.Entry{}, fmt.Errorf("%s: %w", id, dlq.ErrNotFound)
	}
	return l.Entry, nil
}
