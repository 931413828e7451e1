package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// runner carries out one [Replay].
type runner struct {
	Config
	report Report
	held   heldJobs
	// due is when the rate allows the next chunk.
	due time.Time
	// reach is how many entries the next chunk looks at: more than it may publish if the last one found nothing to publish.
	reach int

	// kept are the entries that were not replayed. They stay reserved to the end, so that no chunk meets them again.
	kept []dlq.Resolution
	// seen holds the ids in kept: a reservation may run out before the end.
	seen map[string]bool
	// missing holds the queues that do not exist, and failure the first error of a publish.
	missing map[string]bool
	failure error
}

func newRunner(cfg Config) *runner {
	r := &runner{
		Config: cfg, report: Report{ID: cfg.ID, DryRun: cfg.DryRun}, seen: map[string]bool{}, missing: map[string]bool{},
		held: heldJobs{BreakerWait: cfg.Breakers, byDestination: map[string][]dlq.Resolution{}},
	}
	if start := r.Now(); r.Filter.Until.IsZero() || r.Filter.Until.After(start) {
		r.Filter.Until = start
	}
	return r
}

func (r *runner) run(ctx context.Context) (Report, error) {
	if err := r.replay(ctx); err != nil {
		return r.report, fmt.Errorf("replay %s: %w", r.ID, err)
	}
	return r.report, nil
}

func (r *runner) replay(ctx context.Context) error {
	var err error
	if r.report.Matched, err = r.Store.Count(ctx, r.Filter); err != nil {
		return fmt.Errorf("count entries: %w", err)
	}
	if err := r.held.begin(ctx); err != nil {
		return err
	}
	if r.DryRun {
		return r.dryRun(ctx)
	}
	err = r.canaryThenAll(ctx)
	if err == nil {
		err = r.unpublished()
	}
	return errors.Join(err, r.finish(ctx))
}

func (r *runner) canaryThenAll(ctx context.Context) error {
	if r.Canary.Size > 0 {
		if err := r.canary(ctx); err != nil {
			return err
		}
	}
	for {
		chunk, err := r.next(ctx, r.ChunkSize)
		if err != nil || !chunk.more {
			return err
		}
	}
}

// next handles a chunk. If only held jobs are left it waits for their breakers first.
func (r *runner) next(ctx context.Context, limit int) (chunkResult, error) {
	for {
		result, err := r.chunk(ctx, limit)
		if err != nil || result.more || len(r.held.byDestination) == 0 {
			return result, err
		}
		if err := r.awaitBreakers(ctx); err != nil {
			return result, err
		}
	}
}

// ready prepares entries, keeps those that cannot be published, and holds those whose destination's breaker is open.
func (r *runner) ready(ctx context.Context, entries []dlq.Entry) []republication {
	var ready []republication
	for _, e := range entries {
		if r.seen[e.ID] {
			continue
		}
		job, err := republish(e, r.Config)
		switch {
		case err != nil:
			r.refuse(e.ID, err)
		case r.missing[job.queue]:
			r.fail(e.ID, fmt.Errorf("queue %q: %w", job.queue, queue.ErrQueueNotFound))
		case r.held.holds(ctx, job.destination):
			r.setAside(job.destination, e.ID)
		default:
			ready = append(ready, job)
		}
	}
	return ready
}

// publish publishes to all queues at once and returns the jobs that were confirmed. An error means that going on makes no sense.
func (r *runner) publish(ctx context.Context, ready []republication) (confirmed []republication, err error) {
	byQueue := map[string][]republication{}
	for _, job := range ready {
		byQueue[job.queue] = append(byQueue[job.queue], job)
	}
	names := slices.Sorted(maps.Keys(byQueue))
	results := make([][]queue.PublishResult, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		pubs := make([]queue.Publication, len(byQueue[name]))
		for k, job := range byQueue[name] {
			pubs[k] = job.Publication
		}
		all.Go(func() { results[i] = r.Broker.Publish(ctx, name, pubs) })
	}
	all.Wait()
	down := 0
	for i, name := range names {
		for k, result := range results[i] {
			job := byQueue[name][k]
			if result.Err == nil {
				confirmed = append(confirmed, job)
				continue
			}
			r.fail(job.id, fmt.Errorf("queue %q: %w", name, result.Err))
			if errors.Is(result.Err, queue.ErrQueueNotFound) {
				r.missing[name] = true
			}
			if errors.Is(result.Err, queue.ErrUnavailable) || errors.Is(result.Err, queue.ErrClosed) {
				down++
			}
		}
	}
	if down > 0 && down == len(ready) {
		return confirmed, fmt.Errorf("the broker took nothing of a chunk of %d: %w", down, r.failure)
	}
	return confirmed, nil
}

// mark resolves entries, and tries again while the store is unavailable: an entry that is published but not marked is published
// again by the next replay.
func (r *runner) mark(ctx context.Context, rs []dlq.Resolution) error {
	var unmarked error
	for len(rs) > 0 {
		var again []dlq.Resolution
		for i, err := range r.Store.Resolve(ctx, r.ID, rs) {
			switch {
			case err == nil || errors.Is(err, dlq.ErrNotReserved): // taken by another replay meanwhile: it marks
			case errors.Is(err, dlq.ErrUnavailable) && ctx.Err() == nil:
				again = append(again, rs[i])
			default:
				unmarked = fmt.Errorf("mark %s as %s: %w", rs[i].ID, rs[i].To, err)
			}
		}
		if rs = again; len(rs) > 0 {
			pause.For(ctx, 200*time.Millisecond)
		}
	}
	return unmarked
}

// finish gives back what is kept or held and counts what is left. It works after a cancellation too.
func (r *runner) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Reservation)
	defer cancel()
	back := r.kept
	for _, rs := range r.held.byDestination {
		back = append(back, rs...)
	}
	err := r.giveBack(ctx, back)
	n, countErr := r.Store.Count(ctx, r.Filter)
	r.report.Left = max(0, n-len(back))
	return errors.Join(err, countErr)
}

// unpublished returns an error if entries failed.
func (r *runner) unpublished() error {
	if len(r.missing) > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(r.missing)), ", ")
		return fmt.Errorf("%w: %s: nothing was removed; create it, or replay to another queue", queue.ErrQueueNotFound, names)
	}
	if r.report.Failed > 0 {
		return fmt.Errorf("%d of %d entries were not confirmed and stay dead: replay again; the first: %w",
			r.report.Failed, r.report.Matched, r.failure)
	}
	return nil
}

func (r *runner) fail(id string, err error) {
	r.report.Failed++
	if r.failure == nil {
		r.failure = fmt.Errorf("%s: %w", id, err)
	}
	r.keep(Problem{ID: id, Error: err.Error()})
}

func (r *runner) refuse(id string, err error) {
	r.report.Refused++
	r.keep(Problem{ID: id, Refused: true, Error: err.Error()})
}

func (r *runner) keep(problem Problem) {
	r.seen[problem.ID] = true
	r.kept = append(r.kept, dlq.Resolution{ID: problem.ID, To: dlq.StateDead})
	if len(r.report.Problems) < maxProblems {
		r.report.Problems = append(r.report.Problems, problem)
	}
}

func (r *runner) copyReport() Report {
	report := r.report
	report.Problems = slices.Clone(report.Problems)
	report.HeldFor = maps.Clone(report.HeldFor)
	report.Queues, report.Destinations = maps.Clone(report.Queues), maps.Clone(report.Destinations)
	return report
}
