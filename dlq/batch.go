package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// batchResult is what one batch did.
type batchResult struct {
	// more says that there were entries to try.
	more bool
	// replayed are the jobs that were confirmed.
	replayed []Republished
}

// maxReach is the most entries that a batch looks at for want of one to publish.
const maxReach = 500

// batch reserves entries, publishes up to limit of them and marks what was confirmed. Once reserved, it goes through to the end: ctx
// stops it only before.
func (p *pass) batch(ctx context.Context, limit int) (batchResult, error) {
	if wait := time.Until(p.due); p.Rate > 0 && wait > 0 {
		sleep(ctx, wait)
	}
	look := max(limit, p.reach)
	if s, ok := p.Store.(interface {
		Prepare(ctx context.Context, f Filter, limit int) error
	}); ok {
		if err := s.Prepare(ctx, p.Filter, look); err != nil {
			return batchResult{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return batchResult{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Reservation)
	defer cancel()
	entries, err := p.Store.Reserve(ctx, p.Filter, Reservation{Owner: p.ID, For: p.Reservation, Limit: look, MaxBytes: p.BatchBytes})
	if err != nil {
		return batchResult{}, fmt.Errorf("reserve entries: %w", err)
	}
	ready, err := p.choose(ctx, entries, limit)
	if err != nil {
		return batchResult{}, err
	}
	confirmed, err := p.publish(ctx, ready)
	p.report.Replayed += len(confirmed)
	result := batchResult{more: len(entries) > 0}
	rs := make([]Resolution, len(confirmed))
	for i, r := range confirmed {
		rs[i] = Resolution{ID: r.id, To: StateReplayed}
		result.replayed = append(result.replayed, r.Republished)
	}
	err = errors.Join(err, p.mark(ctx, rs))
	if p.Progress != nil && result.more {
		p.Progress(p.copyReport())
	}
	return result, err
}

// choose returns up to limit of the entries that are to be published now. What is above the limit is given back, as are all after an error.
func (p *pass) choose(ctx context.Context, entries []Entry, limit int) ([]republication, error) {
	ready := p.ready(ctx, entries)
	var surplus []Resolution
	for _, r := range ready[min(limit, len(ready)):] {
		surplus = append(surplus, Resolution{ID: r.id, To: StateDead})
	}
	chosen, err := p.unfinished(ctx, ready[:min(limit, len(ready))])
	if err != nil {
		for _, r := range ready[:min(limit, len(ready))] {
			surplus = append(surplus, Resolution{ID: r.id, To: StateDead})
		}
	}
	if len(surplus) > 0 {
		err = errors.Join(err, p.giveBack(ctx, surplus))
	}
	if p.reach = 0; len(chosen) == 0 {
		p.reach = min(2*max(limit, len(entries)), maxReach)
	}
	if p.Rate > 0 {
		spent := min(float64(len(chosen))/p.Rate, longest.Seconds())
		p.due = latest(p.due, time.Now()).Add(time.Duration(spent * float64(time.Second)))
	}
	return chosen, err
}

// longest is the longest wait for a rate.
const longest = 365 * 24 * time.Hour

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// giveBack ends reservations of entries that stay dead.
func (p *pass) giveBack(ctx context.Context, rs []Resolution) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Reservation)
	defer cancel()
	var err error
	for chunk := range slices.Chunk(rs, 500) {
		err = errors.Join(err, p.mark(ctx, chunk))
	}
	return err
}
