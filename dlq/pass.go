package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// pass is one run of a [Replay].
type pass struct {
	ReplayConfig
	report Report
	hold   hold
	// due is when the rate allows the next batch.
	due time.Time
	// reach is how many entries the next batch looks at: more than it may publish where the last one found nothing to publish.
	reach int

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
	if err := p.hold.begin(ctx); err != nil {
		return err
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
		batch, err := p.next(ctx, p.BatchSize)
		if err != nil || !batch.more {
			return err
		}
	}
}

// next is batch, and waits for breakers where there is nothing but held jobs left.
func (p *pass) next(ctx context.Context, limit int) (batchResult, error) {
	for {
		result, err := p.batch(ctx, limit)
		if err != nil || result.more || len(p.hold.aside) == 0 {
			return result, err
		}
		if err := p.awaitBreakers(ctx); err != nil {
			return result, err
		}
	}
}

// ready prepares entries, keeps those that cannot be published, and holds those whose destination's breaker is open.
func (p *pass) ready(ctx context.Context, entries []Entry) []republication {
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
		case p.hold.holds(ctx, r.destination):
			p.setAside(r.destination, e.ID)
		default:
			ready = append(ready, r)
		}
	}
	return ready
}

// publish sends each entry to its queue, to all queues at once, and returns those that were confirmed. The error says why going on makes no
// sense.
func (p *pass) publish(ctx context.Context, ready []republication) (confirmed []republication, err error) {
	byQueue := map[string][]republication{}
	for _, r := range ready {
		byQueue[r.queue] = append(byQueue[r.queue], r)
	}
	names := slices.Sorted(maps.Keys(byQueue))
	results := make([][]queue.PublishResult, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		pubs := make([]queue.Publication, len(byQueue[name]))
		for k, r := range byQueue[name] {
			pubs[k] = r.Publication
		}
		all.Go(func() { results[i] = p.Broker.Publish(ctx, name, pubs) })
	}
	all.Wait()
	down := 0
	for i, name := range names {
		for k, result := range results[i] {
			r := byQueue[name][k]
			if result.Err == nil {
				confirmed = append(confirmed, r)
				continue
			}
			p.fail(r.id, fmt.Errorf("queue %q: %w", name, result.Err))
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

// finish gives back what is kept or held and counts what is left. It works after a cancellation too.
func (p *pass) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Reservation)
	defer cancel()
	back := p.kept
	for _, rs := range p.hold.aside {
		back = append(back, rs...)
	}
	err := p.giveBack(ctx, back)
	n, countErr := p.Store.Count(ctx, p.Filter)
	p.report.Left = max(0, n-len(back))
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
	p.kept = append(p.kept, Resolution{ID: problem.ID, To: StateDead})
	if len(p.report.Problems) < maxProblems {
		p.report.Problems = append(p.report.Problems, problem)
	}
}

func (p *pass) copyReport() Report {
	report := p.report
	report.Problems = slices.Clone(report.Problems)
	report.HeldFor = maps.Clone(report.HeldFor)
	report.Queues, report.Destinations = maps.Clone(report.Queues), maps.Clone(report.Destinations)
	return report
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
