package ordering

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// Dispatcher enqueues the head of each ordered queue, and the next delivery once the head was delivered or given up. It is a [worker.Observer] of
// every worker that delivers, and its Run goes beside theirs. It needs claims, since copies of a job must be harmless. Jobs of other endpoints
// cost it nothing.
//
// A program that only publishes needs no Run: it appends and enqueues the heads; the programs that deliver do the rest. At least one of them must
// run it, or each queue stops behind its first event.
//
// Every step may be repeated. What a crash leaves undone is done by the next look for lost heads, in any process.
type Dispatcher struct {
	cfg Config

	mu    sync.Mutex
	ended map[Entry]struct{} // deliveries to take out of their queues: at most one for each queue
	wake  chan struct{}
}

// New returns a dispatcher.
func New(cfg Config) (*Dispatcher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("webhook ordering: %w", err)
	}
	return &Dispatcher{cfg: cfg, ended: make(map[Entry]struct{}), wake: make(chan struct{}, 1)}, nil
}

// Observe implements [worker.Observer]: a delivery that has ended leaves its queue.
func (d *Dispatcher) Observe(e worker.Event) {
	s, ok := e.(*worker.Settled)
	if !ok || s.Kind != webhook.KindDeliver || s.Job == nil || s.SettleErr != nil || s.Settlement != worker.SettlementAck && s.Settlement != worker.SettlementDeadLetter {
		return
	}
	if _, isOrdered := s.Job.Headers[deliver.HeaderOrdered]; !isOrdered {
		return
	}
	d.mu.Lock()
	d.ended[Entry{Endpoint: s.Job.Destination, Tenant: s.Job.Headers[deliver.HeaderTenant], Event: s.Job.Headers[signature.HeaderID]}] = struct{}{}
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

const (
	// storeTime bounds one step at the store.
	storeTime = 10 * time.Second
	// advances is how many queues advance at the same time.
	advances = 8
	// lostMost is the longest time between two copies of a head's job.
	lostMost = time.Hour
	// sweepBatch is how many lost heads are enqueued at once.
	sweepBatch = 100
)

// Run advances queues until ctx ends, and looks for heads whose jobs are lost.
func (d *Dispatcher) Run(ctx context.Context) error {
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for ok := true; ok; ok = pause.For(ctx, time.Duration(float64(d.cfg.Interval)*(0.8+0.4*rand.Float64()))) { //nolint:gosec // spreads load
			if err := d.Sweep(ctx); err != nil && ctx.Err() == nil {
				d.cfg.Logger.Warn("lost heads of ordered webhook endpoints could not be enqueued; trying again", "error", err)
			}
		}
	})
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.wake:
		}
		d.advanceAll(ctx)
	}
	sweeps.Wait()
	return nil
}

// advanceAll advances the queues whose heads have ended. One that fails now waits until its head counts as lost.
func (d *Dispatcher) advanceAll(ctx context.Context) {
	d.mu.Lock()
	ended := d.ended
	d.ended = make(map[Entry]struct{})
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime) // a stop would leave the next deliveries to be found as lost
	defer cancel()
	var group errgroup.Group
	group.SetLimit(advances)
	for p := range ended {
		group.Go(func() error {
			if err := d.advance(ctx, p); err != nil {
				d.cfg.Logger.Warn("ordered webhook queue did not advance; trying again later", "endpoint", p.Endpoint, "event", p.Event, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // the goroutines return none
}

// advance takes a delivery out of its queue and enqueues the next one.
func (d *Dispatcher) advance(ctx context.Context, p Entry) error {
	next, ok, err := d.cfg.Queues.Remove(ctx, p)
	if err != nil || !ok {
		return err
	}
	return d.enqueue(ctx, []Entry{next})
}

// Sweep enqueues heads whose jobs may be lost, and skips those that are too old. Run calls it.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	for ctx.Err() == nil {
		if more, err := d.sweep(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

// sweep is one round of Sweep. It reports whether there may be more.
func (d *Dispatcher) sweep(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	heads, err := d.cfg.Queues.Stale(ctx, d.cfg.Lost, max(d.cfg.Lost, lostMost), sweepBatch)
	if err != nil {
		return false, err
	}
	return len(heads) == sweepBatch, d.enqueue(ctx, heads)
}

// enqueue enqueues the jobs of heads.
func (d *Dispatcher) enqueue(ctx context.Context, heads []Entry) error {
	jobs, err := d.jobs(ctx, heads, webhook.Event{})
	errs := []error{err}
	for _, r := range d.cfg.Client.EnqueueMany(ctx, jobs) {
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...)
}

// jobs returns the jobs of heads. A head that cannot be sent any more is skipped, and the next one takes its place. known is an event that
// need not be looked up.
func (d *Dispatcher) jobs(ctx context.Context, heads []Entry, known webhook.Event) (jobs []worker.NewJob, err error) {
	var errs []error
	for _, head := range heads {
		for ok := true; ok; {
			job, skip, err := d.job(ctx, head, known)
			if err != nil {
				errs = append(errs, err)
				break
			}
			if !skip {
				jobs = append(jobs, job...)
				break
			}
			if head, ok, err = d.cfg.Queues.Remove(ctx, head); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	return jobs, errors.Join(errs...)
}

// skipMargin is how long after its deadline a head is skipped: an attempt that the deadline ended has settled by then.
const skipMargin = time.Minute

// job returns the job of a head, no job if that is about to expire, or says that the head is to be skipped.
func (d *Dispatcher) job(ctx context.Context, head Entry, known webhook.Event) (job []worker.NewJob, skip bool, err error) {
	deadline := head.Since.Add(d.cfg.MaxAge)
	switch left := time.Until(deadline); {
	case left < -skipMargin:
		d.cfg.Logger.Warn("ordered webhook delivery is too old: skipped, and the next one is sent", "endpoint", head.Endpoint, "event", head.Event, "since", head.Since)
		return nil, true, nil
	case left <= 0:
		return nil, false, nil
	}
	e := known
	if head.Event != known.ID || head.Tenant != known.Tenant {
		e, err = d.cfg.Events.Event(ctx, head.Tenant, head.Event)
		if errors.Is(err, webhook.ErrNoEvent) {
			d.cfg.Logger.Error("ordered webhook delivery has outlived its event: skipped, and the next one is sent", "endpoint", head.Endpoint, "event", head.Event)
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	j := deliver.New(head.Endpoint, deliver.Event{ID: e.ID, Tenant: e.Tenant, ContentType: e.ContentType, Body: e.Body})
	j.Headers[deliver.HeaderOrdered], j.Queue, j.Deadline = "1", d.cfg.Queue, deadline
	return []worker.NewJob{j}, false, nil
}

// Append puts a published event at the end of the queues of endpoints, and enqueues the heads that have no job yet. It returns how many of the
// queues keep the event for sure and, where it is the head, had its job confirmed. It may be repeated.
func (d *Dispatcher) Append(ctx context.Context, e webhook.Event, endpoints []string) (confirmed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	heads, err := d.cfg.Queues.Append(ctx, e.Tenant, e.ID, endpoints)
	if err != nil {
		return 0, err
	}
	jobs, err := d.jobs(ctx, heads, e)
	confirmed = len(endpoints)
	for i, r := range d.cfg.Client.EnqueueMany(ctx, jobs) {
		if r.Err == nil {
			continue
		}
		err = errors.Join(err, r.Err)
		if slices.Contains(endpoints, jobs[i].Destination) && jobs[i].Headers[signature.HeaderID] == e.ID {
			confirmed--
		}
	}
	if confirmed == len(endpoints) {
		return confirmed, nil // what else failed is not this event's, and is found as lost
	}
	return confirmed, err
}

// Drop takes a tenant's deliveries out of the queue of an endpoint that was deleted, and returns how many there were. Otherwise each would wait for
// the endpoint for a while and become a dead letter. The events stay kept.
func (d *Dispatcher) Drop(ctx context.Context, tenant, endpointID string) (int, error) {
	return d.cfg.Queues.Drop(ctx, tenant, endpointID)
}
