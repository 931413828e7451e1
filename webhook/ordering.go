package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// OrderingConfig configures an [Ordering].
type OrderingConfig struct {
	// Lines keeps what waits. Required.
	Lines Lines
	// Events has the bodies of what waits. The stores of package webhook/journal are fit for it. Required.
	Events interface {
		// Event returns one event with its body, or [ErrNoEvent].
		Event(ctx context.Context, tenant, id string) (Event, error)
	}
	// Client enqueues the deliveries. Required.
	Client *worker.Client
	// Queue of the deliveries. Empty means the client's.
	Queue string
	// MaxAge is how long a delivery may be at the head of its line. Then it is given up, as the job's deadline says, and the next one goes. Zero
	// means 24 h; it should be the kind's.
	MaxAge time.Duration
	// Lost is how long after it was enqueued a head that is still there is enqueued again, since its job may be lost. A copy does no harm. Each
	// further time it is twice as long, up to an hour. Zero means 1 min.
	Lost time.Duration
	// Interval is how often such heads are looked for. Zero means 15 s.
	Interval time.Duration
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

func (c OrderingConfig) withDefaults() OrderingConfig {
	setDefault(&c.MaxAge, 24*time.Hour)
	setDefault(&c.Lost, time.Minute)
	setDefault(&c.Interval, 15*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c OrderingConfig) validate() error {
	switch {
	case c.Lines == nil:
		return errors.New("lines: required")
	case c.Events == nil:
		return errors.New("events: required, as the lines hold no bodies")
	case c.Client == nil:
		return errors.New("client: required")
	case c.MaxAge < 0 || c.Lost < 0 || c.Interval < 0:
		return fmt.Errorf("max age %s, lost %s, interval %s: must be positive", c.MaxAge, c.Lost, c.Interval)
	}
	return nil
}

// Ordering sends the events of endpoints that ask for order one after the other: the next one is enqueued once the one before was delivered or
// given up. It is a [worker.Observer] of every worker that delivers, and its Run goes beside theirs. It needs keyed deliveries: copies of a job must
// be harmless. Jobs of other endpoints cost it nothing.
//
// A program that only publishes needs no Run: publishing puts an event into its lines and enqueues the heads, and what comes after them is enqueued
// by the programs that deliver, or, where the publisher died in between, by their look for lost heads. At least one of them must run it: else
// each line stands still behind its first event.
//
// What it does is safe to repeat, and what a crash keeps it from doing is done by whoever looks for lost heads next, in any process.
type Ordering struct {
	cfg OrderingConfig

	mu    sync.Mutex
	ended map[Place]struct{} // deliveries that are to leave their lines: at most one for each line
	wake  chan struct{}
}

// NewOrdering returns an ordering.
func NewOrdering(cfg OrderingConfig) (*Ordering, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("webhook ordering: %w", err)
	}
	return &Ordering{cfg: cfg, ended: make(map[Place]struct{}), wake: make(chan struct{}, 1)}, nil
}

// headerLine marks the jobs of lines, so that nobody has to ask which endpoint wants order.
const headerLine = "webhook-line"

// Observe implements [worker.Observer]: a delivery that came to its end leaves its line.
func (o *Ordering) Observe(e worker.Event) {
	s, ok := e.(*worker.Settled)
	if !ok || s.Kind != KindDeliver || s.Job == nil || s.SettleErr != nil || s.Settlement != worker.SettlementAck && s.Settlement != worker.SettlementDeadLetter {
		return
	}
	if _, inLine := s.Job.Headers[headerLine]; !inLine {
		return
	}
	o.mu.Lock()
	o.ended[Place{Endpoint: s.Job.Destination, Tenant: s.Job.Headers[headerTenant], Event: s.Job.Headers[signature.HeaderID]}] = struct{}{}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

const (
	// advances is how many lines move on at the same time.
	advances = 8
	// lostMost is the longest time between two copies of a head's job.
	lostMost = time.Hour
	// sweepBatch is how many lost heads are enqueued at once.
	sweepBatch = 100
)

// Run moves lines on until ctx ends, and looks for heads whose jobs are lost.
func (o *Ordering) Run(ctx context.Context) error {
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for ok := true; ok; ok = sleep(ctx, time.Duration(float64(o.cfg.Interval)*(0.8+0.4*rand.Float64()))) { //nolint:gosec // spreads load
			if err := o.Sweep(ctx); err != nil && ctx.Err() == nil {
				o.cfg.Logger.Warn("lost heads of ordered webhook endpoints could not be enqueued; trying again", "error", err)
			}
		}
	})
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-o.wake:
		}
		o.advanceAll(ctx)
	}
	sweeps.Wait()
	return nil
}

// advanceAll moves on the lines whose heads have ended. One that cannot be moved now waits until its head is taken for lost.
func (o *Ordering) advanceAll(ctx context.Context) {
	o.mu.Lock()
	ended := o.ended
	o.ended = make(map[Place]struct{})
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime) // a stop would leave the next deliveries to be found as lost
	defer cancel()
	var group errgroup.Group
	group.SetLimit(advances)
	for p := range ended {
		group.Go(func() error {
			if err := o.advance(ctx, p); err != nil {
				o.cfg.Logger.Warn("the line of an ordered webhook endpoint did not move on; trying again later", "endpoint", p.Endpoint, "event", p.Event, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // the goroutines return none
}

// advance takes a delivery out of its line and enqueues the next one.
func (o *Ordering) advance(ctx context.Context, p Place) error {
	next, ok, err := o.cfg.Lines.Leave(ctx, p)
	if err != nil || !ok {
		return err
	}
	return o.enqueue(ctx, []Place{next})
}

// Sweep enqueues heads whose jobs may be lost, and passes those that are too old. Run calls it.
func (o *Ordering) Sweep(ctx context.Context) error {
	for ctx.Err() == nil {
		if more, err := o.sweep(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

// sweep is one round of Sweep. It reports whether there may be more.
func (o *Ordering) sweep(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	heads, err := o.cfg.Lines.Stale(ctx, o.cfg.Lost, max(o.cfg.Lost, lostMost), sweepBatch)
	if err != nil {
		return false, err
	}
	return len(heads) == sweepBatch, o.enqueue(ctx, heads)
}

// enqueue enqueues the jobs of heads.
func (o *Ordering) enqueue(ctx context.Context, heads []Place) error {
	jobs, err := o.jobs(ctx, heads, Event{})
	errs := []error{err}
	for _, r := range o.cfg.Client.EnqueueMany(ctx, jobs) {
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...)
}

// jobs returns the jobs of heads. A head that cannot be sent any more is passed, and the one behind it takes its place. known is an event that
// needs not be looked up.
func (o *Ordering) jobs(ctx context.Context, heads []Place, known Event) (jobs []worker.NewJob, err error) {
	var errs []error
	for _, head := range heads {
		for ok := true; ok; {
			job, pass, err := o.job(ctx, head, known)
			if err != nil {
				errs = append(errs, err)
				break
			}
			if !pass {
				jobs = append(jobs, job...)
				break
			}
			if head, ok, err = o.cfg.Lines.Leave(ctx, head); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	return jobs, errors.Join(errs...)
}

// passMargin is how long after its deadline a head is passed: an attempt that the deadline ended has settled by then.
const passMargin = time.Minute

// job returns the job of a head, no job if that is about to expire, or says that the head is to be passed.
func (o *Ordering) job(ctx context.Context, head Place, known Event) (job []worker.NewJob, pass bool, err error) {
	deadline := head.Since.Add(o.cfg.MaxAge)
	switch left := time.Until(deadline); {
	case left < -passMargin:
		o.cfg.Logger.Warn("an ordered webhook delivery is too old: it is passed, and the next one goes", "endpoint", head.Endpoint, "event", head.Event, "since", head.Since)
		return nil, true, nil
	case left <= 0:
		return nil, false, nil
	}
	e := known
	if head.Event != known.ID || head.Tenant != known.Tenant {
		e, err = o.cfg.Events.Event(ctx, head.Tenant, head.Event)
		if errors.Is(err, ErrNoEvent) {
			o.cfg.Logger.Error("an ordered webhook delivery has outlived its event: it is passed, and the next one goes", "endpoint", head.Endpoint, "event", head.Event)
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	j := NewEventDelivery(head.Endpoint, e)
	j.Headers[headerLine], j.Queue, j.Deadline = "1", o.cfg.Queue, deadline
	return []worker.NewJob{j}, false, nil
}

// Append puts a published event at the end of the lines of endpoints, and enqueues the heads that have no job yet. It returns how many of the
// endpoints' lines keep the event for sure and, where it is the head, had its job confirmed. It may be repeated.
func (o *Ordering) Append(ctx context.Context, e Event, endpoints []string) (confirmed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	heads, err := o.cfg.Lines.Append(ctx, e.Tenant, e.ID, endpoints)
	if err != nil {
		return 0, err
	}
	jobs, err := o.jobs(ctx, heads, e)
	confirmed = len(endpoints)
	for i, r := range o.cfg.Client.EnqueueMany(ctx, jobs) {
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

// Drop takes a tenant's deliveries out of the line of an endpoint that it has no more, and returns how many there were. Otherwise each of them would
// wait for the endpoint for a while, and become a dead letter. The events stay kept.
func (o *Ordering) Drop(ctx context.Context, tenant, endpointID string) (int, error) {
	return o.cfg.Lines.Drop(ctx, tenant, endpointID)
}

// sleep waits for d and reports whether ctx is not done.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
