package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/caisson-go/caisson/queue"
)

// pass is one run of a [Replay].
type pass struct {
	ReplayConfig
	report  Report
	limiter *rate.Limiter // nil without a rate

	// kept are the entries that were not replayed. They stay reserved to the end, so that the pass does not meet them again.
	kept []Resolution
	// seen holds the ids in kept: a reservation may run out before the end.
	seen map[string]bool
	// missing holds the queues that do not exist, and failure the first error of a publish.
	missing map[string]bool
	failure error
}

func (p *pass) run(ctx context.Context) error {
	var err error
	if p.report.Matched, err = p.Store.Count(ctx, p.Filter); err != nil {
		return fmt.Errorf("count entries: %w", err)
	}
	if p.DryRun {
		return p.dryRun(ctx)
	}
	err = p.canaryThenAll(ctx)
	if err == nil {
		err = p.unpublished()
	}
	return errors.Join(err, p.finish(ctx))
}

func (p *pass) canaryThenAll(ctx context.Context) error {
	if p.Canary.Size > 0 {
		if err := p.canary(ctx); err != nil {
			return err
		}
	}
	for {
		batch, err := p.batch(ctx, p.BatchSize)
		if err != nil || !batch.more {
			return err
		}
	}
}

// batchResult is what one batch did.
type batchResult struct {
	// more says that there were entries to try.
	more bool
	// replayed are the jobs that were confirmed.
	replayed []Republished
}

// batch reserves up to limit entries, publishes them and marks what was confirmed. Once reserved, it goes through to the end: ctx
// stops it only before.
func (p *pass) batch(ctx context.Context, limit int) (batchResult, error) {
	if p.limiter != nil {
		if err := p.limiter.WaitN(ctx, limit); err != nil {
			return batchResult{}, fmt.Errorf("wait for the rate: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return batchResult{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Reservation)
	defer cancel()
	entries, err := p.Store.Reserve(ctx, p.Filter, Reservation{Owner: p.ID, For: p.Reservation, Limit: limit, MaxBytes: p.BatchBytes})
	if err != nil {
		return batchResult{}, fmt.Errorf("reserve entries: %w", err)
	}
	ready := p.ready(entries)
	confirmed, err := p.publish(ctx, ready)
	p.report.Replayed += len(confirmed)
	result := batchResult{more: len(entries) > 0}
	rs := make([]Resolution, len(confirmed))
	for i, r := range confirmed {
		rs[i] = Resolution{ID: r.id, To: Replayed}
		result.replayed = append(result.replayed, r.Republished)
	}
	err = errors.Join(err, p.mark(ctx, rs))
	if p.Progress != nil && result.more {
		p.Progress(p.copyReport())
	}
	return result, err
}

// ready prepares entries and keeps those that cannot be published.
func (p *pass) ready(entries []Entry) []republication {
	var ready []republication
	for _, e := range entries {
		if p.seen[e.ID] {
			continue
		}
		r, err := republish(e, p.ReplayConfig)
		switch {
		case err != nil:
			p.refuse(e.ID, err)
		case p.missing[r.queue]:
			p.fail(e.ID, fmt.Errorf("queue %q: %w", r.queue, queue.ErrQueueNotFound))
		default:
			ready = append(ready, r)
		}
	}
	return ready
}

// publish sends each entry to its queue and returns those that were confirmed. The error says why going on makes no sense.
func (p *pass) publish(ctx context.Context, ready []republication) (confirmed []republication, err error) {
	byQueue := map[string][]republication{}
	for _, r := range ready {
		byQueue[r.queue] = append(byQueue[r.queue], r)
	}
	down := 0
	for _, name := range slices.Sorted(maps.Keys(byQueue)) {
		batch := byQueue[name]
		pubs := make([]queue.Publication, len(batch))
		for i, r := range batch {
			pubs[i] = r.Publication
		}
		for i, result := range p.Broker.Publish(ctx, name, pubs) {
			if result.Err == nil {
				confirmed = append(confirmed, batch[i])
				continue
			}
			p.fail(batch[i].id, fmt.Errorf("queue %q: %w", name, result.Err))
			if errors.Is(result.Err, queue.ErrQueueNotFound) {
				p.missing[name] = true
			}
			if errors.Is(result.Err, queue.ErrUnavailable) || errors.Is(result.Err, queue.ErrClosed) {
				down++
			}
		}
	}
	if down > 0 && down == len(ready) {
		return confirmed, fmt.Errorf("the broker took nothing of a batch of %d: %w", down, p.failure)
	}
	return confirmed, nil
}

// mark resolves entries, and tries again while the store is unavailable: an entry that is published but not marked is published
// again by the next replay.
func (p *pass) mark(ctx context.Context, rs []Resolution) error {
	var unmarked error
	for len(rs) > 0 {
		var again []Resolution
		for i, err := range p.Store.Resolve(ctx, p.ID, rs) {
			switch {
			case err == nil || errors.Is(err, ErrNotReserved): // taken by another replay meanwhile: it marks
			case errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
				again = append(again, rs[i])
			default:
				unmarked = fmt.Errorf("mark %s as %s: %w", rs[i].ID, rs[i].To, err)
			}
		}
		if rs = again; len(rs) > 0 {
			sleep(ctx, 200*time.Millisecond)
		}
	}
	return unmarked
}

// finish gives back what is kept and counts what is left. It works after a cancellation too.
func (p *pass) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Reservation)
	defer cancel()
	var err error
	for rs := range slices.Chunk(p.kept, 500) {
		err = errors.Join(err, p.mark(ctx, rs))
	}
	n, countErr := p.Store.Count(ctx, p.Filter)
	p.report.Left = max(0, n-len(p.kept))
	return errors.Join(err, countErr)
}

// unpublished returns an error if entries failed.
func (p *pass) unpublished() error {
	if len(p.missing) > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(p.missing)), ", ")
		return fmt.Errorf("%w: %s: nothing was removed; create it, or replay to another queue", queue.ErrQueueNotFound, names)
	}
	if p.report.Failed > 0 {
		return fmt.Errorf("%d of %d entries were not confirmed and stay dead: replay again; the first: %w",
			p.report.Failed, p.report.Matched, p.failure)
	}
	return nil
}

func (p *pass) fail(id string, err error) {
	p.report.Failed++
	if p.failure == nil {
		p.failure = fmt.Errorf("%s: %w", id, err)
	}
	p.keep(Problem{ID: id, Error: err.Error()})
}

func (p *pass) refuse(id string, err error) {
	p.report.Refused++
	p.keep(Problem{ID: id, Refused: true, Error: err.Error()})
}

func (p *pass) keep(problem Problem) {
	p.seen[problem.ID] = true
	p.kept = append(p.kept, Resolution{ID: problem.ID, To: Dead})
	if len(p.report.Problems) < maxProblems {
		p.report.Problems = append(p.report.Problems, problem)
	}
}

func (p *pass) copyReport() Report {
	report := p.report
	report.Problems = slices.Clone(report.Problems)
	return report
}

// dryRun goes through the entries as a replay would and changes nothing.
func (p *pass) dryRun(ctx context.Context) error {
	for after := ""; ; {
		entries, next, err := p.Store.List(ctx, p.Filter, after, 500)
		if err != nil {
			return fmt.Errorf("list entries: %w", err)
		}
		for _, e := range entries {
			e, err := p.Store.Get(ctx, e.ID)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("get entry: %w", err)
			}
			if _, err := republish(e, p.ReplayConfig); err != nil {
				p.refuse(e.ID, err)
			} else {
				p.report.Replayed++
			}
		}
		if p.Progress != nil && len(entries) > 0 {
			p.Progress(p.copyReport())
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
