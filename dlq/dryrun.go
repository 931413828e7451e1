package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// dryRun goes through the entries as a replay would and changes nothing.
func (p *pass) dryRun(ctx context.Context) error {
	p.report.Queues, p.report.Destinations = map[string]int{}, map[string]int{}
	for after := ""; ; {
		list, next, err := p.Store.List(ctx, p.Filter, after, 500)
		if err != nil {
			return fmt.Errorf("list entries: %w", err)
		}
		for some := range slices.Chunk(list, loadedAtOnce) {
			if err := p.dryRunOf(ctx, some); err != nil {
				return err
			}
		}
		if p.Progress != nil && len(list) > 0 {
			p.Progress(p.copyReport())
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// loadedAtOnce is how many messages a dry run has in memory.
const loadedAtOnce = 50

func (p *pass) dryRunOf(ctx context.Context, list []Entry) error {
	entries, err := p.load(ctx, list)
	if err != nil {
		return fmt.Errorf("get entries: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.Reservation) // for claims that cannot be asked, as a batch waits for them
	defer cancel()
	ready, err := p.unfinished(ctx, p.ready(ctx, entries))
	if err != nil {
		return err
	}
	for _, r := range ready {
		p.report.Replayed++
		p.report.Queues[r.queue]++
		if r.destination != "" {
			p.report.Destinations[r.destination]++
		}
	}
	return nil
}

// load returns entries with their messages, without those that are deleted meanwhile.
func (p *pass) load(ctx context.Context, list []Entry) (entries []Entry, err error) {
	if many, ok := p.Store.(interface {
		GetMany(ctx context.Context, ids []string) ([]Entry, error)
	}); ok {
		ids := make([]string, len(list))
		for i, e := range list {
			ids[i] = e.ID
		}
		return many.GetMany(ctx, ids)
	}
	for _, e := range list {
		e, err := p.Store.Get(ctx, e.ID)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
