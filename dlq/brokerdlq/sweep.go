package brokerdlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// Sweep is an [Queues.Import] of all queues that are not empty: it stores what the broker itself dead-lettered, with its reason, and tidies
// the copies of a [Mirror]. Several sweeps at once are safe: a message is leased to one of them, and storing twice stores once. A sweep that
// meets more copies than [Config.MaxKept] ends incomplete.
func (q *Queues) Sweep(ctx context.Context, store dlq.Store) (ImportReport, error) {
	names, err := q.sources(ctx, dlq.Filter{})
	if err != nil {
		return ImportReport{}, err
	}
	some := &Queues{cfg: q.cfg}
	some.cfg.Queues = nil
	for _, name := range names {
		d, err := q.cfg.Broker.Depth(ctx, queue.DLQ(name))
		switch {
		case errors.Is(err, queue.ErrQueueNotFound), err == nil && d.Ready.Known && d.Ready.N == 0:
			continue // no scan, which would wait for Config.Idle
		case err != nil:
			return ImportReport{}, fmt.Errorf("count dead letters of %s: %w", name, unavailable(err))
		}
		some.cfg.Queues = append(some.cfg.Queues, name)
	}
	if len(some.cfg.Queues) == 0 {
		return ImportReport{}, nil
	}
	report, err := some.Import(ctx, store, dlq.Filter{})
	if errors.Is(err, ErrTooMany) {
		err = nil
	}
	return report, err
}
