package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/pause"
)

// chunkResult is what one chunk did.
type chunkResult struct {
	// more says that there were entries to try.
	more bool
	// replayed are the jobs that were confirmed.
	replayed []Republished
}

// maxReach is the most entries that a chunk looks at until it finds one to publish.
const maxReach = 500

// chunk reserves entries, publishes up to limit of them and marks what was confirmed. ctx stops it only before it reserves.
func (r *runner) chunk(ctx context.Context, limit int) (chunkResult, error) {
	if wait := time.Until(r.due); r.Rate > 0 && wait > 0 {
		pause.For(ctx, wait)
	}
	look := max(limit, r.reach)
	if s, ok := r.Store.(Preparer); ok {
		if err := s.Prepare(ctx, r.Filter, look); err != nil {
			return chunkResult{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return chunkResult{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Reservation)
	defer cancel()
	entries, err := r.Store.Reserve(ctx, r.Filter, dlq.Reservation{Owner: r.ID, For: r.Reservation, Limit: look, MaxBytes: r.ChunkBytes})
	if err != nil {
		return chunkResult{}, fmt.Errorf("reserve entries: %w", err)
	}
	ready, err := r.choose(ctx, entries, limit)
	if err != nil {
		return chunkResult{}, err
	}
	confirmed, err := r.publish(ctx, ready)
	r.report.Replayed += len(confirmed)
	result := chunkResult{more: len(entries) > 0}
	rs := make([]dlq.Resolution, len(confirmed))
	for i, job := range confirmed {
		rs[i] = dlq.Resolution{ID: job.id, To: dlq.StateReplayed}
		result.replayed = append(result.replayed, job.Republished)
	}
	err = errors.Join(err, r.mark(ctx, rs))
	if r.Progress != nil && result.more {
		r.Progress(r.copyReport())
	}
	return result, err
}

// choose returns up to limit of the entries that are to be published now. What is above the limit is given back, as are all after an error.
func (r *runner) choose(ctx context.Context, entries []dlq.Entry, limit int) ([]republication, error) {
	ready := r.ready(ctx, entries)
	first := ready[:min(limit, len(ready))]
	surplus := staysDead(ready[len(first):])
	chosen, err := r.unfinished(ctx, first)
	if err != nil {
		surplus = append(surplus, staysDead(first)...)
	}
	if len(surplus) > 0 {
		err = errors.Join(err, r.giveBack(ctx, surplus))
	}
	if r.reach = 0; len(chosen) == 0 {
		r.reach = min(2*max(limit, len(entries)), maxReach)
	}
	if r.Rate > 0 {
		spent := min(float64(len(chosen))/r.Rate, longest.Seconds())
		r.due = latest(r.due, time.Now()).Add(time.Duration(spent * float64(time.Second)))
	}
	return chosen, err
}

func staysDead(jobs []republication) (rs []dlq.Resolution) {
	for _, job := range jobs {
		rs = append(rs, dlq.Resolution{ID: job.id, To: dlq.StateDead})
	}
	return rs
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
func (r *runner) giveBack(ctx context.Context, rs []dlq.Resolution) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Reservation)
	defer cancel()
	var err error
	for chunk := range slices.Chunk(rs, 500) {
		err = errors.Join(err, r.mark(ctx, chunk))
	}
	return err
}
