package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
)

// dryRun works through the entries as a replay would and changes nothing.
func (r *runner) dryRun(ctx context.Context) error {
	r.report.Queues, r.report.Destinations = map[string]int{}, map[string]int{}
	for after := ""; ; {
		list, next, err := r.Store.List(ctx, r.Filter, after, 500)
		if err != nil {
			return fmt.Errorf("list entries: %w", err)
		}
		for some := range slices.Chunk(list, loadedAtOnce) {
			if err := r.dryRunOf(ctx, some); err != nil {
				return err
			}
		}
		if r.Progress != nil && len(list) > 0 {
			r.Progress(r.copyReport())
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// loadedAtOnce is how many messages a dry run has in memory.
const loadedAtOnce = 50

func (r *runner) dryRunOf(ctx context.Context, list []dlq.Entry) error {
	entries, err := r.load(ctx, list)
	if err != nil {
		return fmt.Errorf("get entries: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.Reservation) // for claims that cannot be asked, as a chunk does
	defer cancel()
	ready, err := r.unfinished(ctx, r.ready(ctx, entries))
	if err != nil {
		return err
	}
	for _, job := range ready {
		r.report.Replayed++
		r.report.Queues[job.queue]++
		if job.destination != "" {
			r.report.Destinations[job.destination]++
		}
	}
	return nil
}

// load returns entries with their messages, without those that are deleted meanwhile.
func (r *runner) load(ctx context.Context, list []dlq.Entry) (entries []dlq.Entry, err error) {
	if many, ok := r.Store.(Loader); ok {
		ids := make([]string, len(list))
		for i, e := range list {
			ids[i] = e.ID
		}
		return many.GetMany(ctx, ids)
	}
	for _, e := range list {
		e, err := r.Store.Get(ctx, e.ID)
		if errors.Is(err, dlq.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
