package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/schedule"
)

// Worker runs jobs. Make one with [New] and run it once.
type Worker struct {
	cfg          Config
	limits       queue.Capabilities
	kinds        *kinds
	pools        []*pool
	destinations *pools.Destinations
	observer     Observer
	store        *storeGate
	together     idempotency.Transactional // set if claims and queues share a database
	heart        *heart
	hold         *holder
	runners      []*queueRunner
	stuck        stuckJobs

	work     context.Context // of handlers; cancelled with ErrStopping when the stop grace is over
	settling *bounded        // of calls to stores and broker; outlives work
	hardStop chan struct{}   // closed when handlers that have not returned are abandoned
	attempts sync.WaitGroup
	crew     crew
	late     sync.WaitGroup // waits for abandoned handlers

	mu    sync.Mutex
	state state
}

type state uint8

const (
	stateNew state = iota
	stateRunning
	stateStopping
	stateStopped
)

// New checks the whole configuration and registration and returns a worker that is ready to run. All faults are reported at once.
func New(cfg Config) (*Worker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("worker configuration: %w", err)
	}
	kinds, err := cfg.Registry.freeze()
	if err != nil {
		return nil, fmt.Errorf("registered kinds: %w", err)
	}
	if err := settleKeys(cfg, kinds); err != nil {
		return nil, fmt.Errorf("registered kinds: %w", err)
	}
	poolList, err := buildPools(kinds.all, cfg.Concurrency)
	if err != nil {
		return nil, fmt.Errorf("bulkheads: %w", err)
	}
	w := &Worker{cfg: cfg, limits: cfg.Broker.Capabilities(), kinds: kinds, pools: poolList, hardStop: make(chan struct{})}
	w.observer = guarded{next: Observers(cfg.Observer), logger: cfg.Logger}
	w.store = newStoreGate(w.observe)
	if cfg.Store != nil {
		w.store.ping = cfg.Store.Ping
		w.store.stops = !slices.ContainsFunc(kinds.all, func(k *kind) bool { return !k.keyed })
		w.together = sharedDatabase(cfg)
	}
	w.heart = newHeart(w)
	w.hold = newHolder(w)
	if w.destinations, err = w.newDestinations(); err != nil {
		return nil, fmt.Errorf("destinations: %w", err)
	}
	return w, nil
}

// sharedDatabase returns the store if it lives in the broker's own database, so that a completion and its ack can be one transaction.
func sharedDatabase(cfg Config) idempotency.Transactional {
	type inDatabase interface{ Database() any }
	broker, ok := cfg.Broker.(inDatabase)
	if !ok {
		return nil
	}
	store, ok := cfg.Store.(inDatabase)
	if !ok || broker.Database() != store.Database() {
		return nil
	}
	joined, _ := cfg.Store.(idempotency.Transactional)
	return joined
}

func (w *Worker) newDestinations() (*pools.Destinations, error) {
	cfg := w.cfg.Destinations
	also := cfg.OnTransition
	cfg.OnTransition = func(t pools.Transition) {
		w.hold.changed(t)
		w.observe(&BreakerChanged{t})
		if also != nil {
			also(t)
		}
	}
	// A probe lasts as long as its job, and is heard only within its lease.
	if lease := &cfg.Default.Breaker.ProbeLease; *lease == 0 {
		*lease = time.Minute
		for _, k := range w.kinds.all {
			*lease = max(*lease, k.config.Timeout+k.config.TimeoutGrace+time.Minute)
		}
	}
	return pools.NewDestinations(cfg)
}

// Destinations returns the worker's breakers and limits, to look at, to force or reset, and to change while it runs.
func (w *Worker) Destinations() *pools.Destinations { return w.destinations }

// settleKeys decides for each kind whether it takes claims.
func settleKeys(cfg Config, kinds *kinds) error {
	var errs []error
	for _, k := range kinds.all {
		k.keyed = cfg.Store != nil && k.config.Idempotency != None
		if k.config.Idempotency == Keyed && cfg.Store == nil {
			errs = append(errs, fmt.Errorf("kind %q: asks for idempotency keys but the worker has no store: set Config.Store or Idempotency: worker.None", k.name))
		}
		if k.keyed && k.config.MaxAge > cfg.Retention.Keys {
			errs = append(errs, fmt.Errorf("kind %q: max age %s is above the key retention %s: a late redelivery could run twice", k.name, k.config.MaxAge, cfg.Retention.Keys))
		}
	}
	for i, q := range cfg.Queues {
		if q.DefaultKind != "" && kinds.find(q.DefaultKind, 0) == nil {
			errs = append(errs, fmt.Errorf("queues[%d] %q: default kind %q is not registered", i, q.Name, q.DefaultKind))
		}
	}
	return errors.Join(errs...)
}

// Run works until ctx is done, then stops: it ends receiving, gives back what has not started, lets running handlers finish for
// Stop.Grace, cancels their contexts, and after Stop.Hard abandons those that have not returned. It returns nil after a clean stop, an
// [*AbandonedError] naming abandoned jobs, or the error that made working impossible. Run may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if !w.enter(stateNew, stateRunning) {
		return errors.New("worker: Run may be called once")
	}
	defer w.enter(stateStopping, stateStopped)
	stop, stopNow := context.WithCancel(ctx)
	defer stopNow()
	work, endWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endWork(ErrStopping)
	settling, endSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer endSettling()
	w.work, w.settling = work, newBounded(settling, w.cfg.Lease)
	defer w.settling.close()
	if err := w.subscribe(ctx); err != nil {
		w.enter(stateRunning, stateStopping)
		if ctx.Err() != nil {
			err = nil // stopped before it began
		}
		return errors.Join(err, w.unsubscribe())
	}

	w.warnOfShortAges()
	background := w.startBackground(stop, settling)
	failed := make(chan error, len(w.runners))
	var receivers sync.WaitGroup
	for _, q := range w.runners {
		receivers.Go(func() {
			if err := q.run(stop); err != nil {
				failed <- err
				stopNow()
			}
		})
	}
	<-stop.Done()
	w.enter(stateRunning, stateStopping)
	err := w.drain(&receivers, endWork, endSettling)
	endSettling() // heartbeat and janitors end last: settlements needed them
	background.Wait()
	select {
	case cause := <-failed:
		err = errors.Join(cause, err)
	default:
	}
	return errors.Join(err, w.unsubscribe())
}

// drain is the stop: see Run.
func (w *Worker) drain(receivers *sync.WaitGroup, endWork context.CancelCauseFunc, endSettling context.CancelFunc) error {
	timers := []*time.Timer{
		time.AfterFunc(w.cfg.Stop.Grace, func() { endWork(ErrStopping) }),
		time.AfterFunc(w.cfg.Stop.Grace+w.cfg.Stop.Hard, func() { close(w.hardStop) }),
		time.AfterFunc(w.cfg.Stop.Grace+w.cfg.Stop.Hard+settleGrace, endSettling),
	}
	receivers.Wait()
	w.attempts.Wait()
	for _, t := range timers {
		t.Stop()
	}
	w.crew.close()
	if jobs := w.stuck.list(); len(jobs) > 0 {
		return &AbandonedError{Jobs: jobs}
	}
	w.crew.wg.Wait()
	w.late.Wait()
	return nil
}

// settleGrace is how long after the hard stop settlements may still try to reach an unavailable store or broker.
const settleGrace = 2 * time.Second

// warnOfShortAges names kinds whose attempts take longer than they may: legal, but seldom meant.
func (w *Worker) warnOfShortAges() {
	for _, k := range w.kinds.all {
		if span := schedule.Span(k.config.Backoff, k.config.MaxAttempts); span > k.config.MaxAge {
			w.cfg.Logger.Warn("attempts may take longer than the max age: late ones expire instead", "kind", k.name, "attempts", k.config.MaxAttempts,
				"span", span, "max_age", k.config.MaxAge)
		}
	}
}

func (w *Worker) subscribe(ctx context.Context) error {
	weights := make([]int, len(w.cfg.Queues))
	for i, q := range w.cfg.Queues {
		weights[i] = q.Weight
	}
	for i, share := range shares(w.cfg.Concurrency, weights) {
		q := w.cfg.Queues[i]
		if err := w.cfg.Broker.CreateQueue(ctx, q.Name); err != nil {
			return fmt.Errorf("queue %q: %w", q.Name, err)
		}
		sub, err := w.cfg.Broker.Subscribe(ctx, q.Name, queue.SubscribeConfig{Lease: w.cfg.Lease, Slots: share})
		if err != nil {
			return fmt.Errorf("subscribe to queue %q: %w", q.Name, err)
		}
		w.mu.Lock()
		w.runners = append(w.runners, &queueRunner{w: w, cfg: q, slots: newSlots(share), sub: sub, jobs: make(chan *attempt, share)})
		w.mu.Unlock()
	}
	return nil
}

func (w *Worker) unsubscribe() error {
	var errs []error
	for _, q := range w.runners {
		if err := q.sub.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close subscription to %q: %w", q.cfg.Name, err))
		}
	}
	return errors.Join(errs...)
}

// startBackground runs what goes on beside the attempts. The heartbeat and janitor live as long as settlements; releasing held jobs
// stops with receiving.
func (w *Worker) startBackground(stop, settling context.Context) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() { w.heart.run(settling) })
	wg.Go(func() { w.cleanUp(stop) })
	wg.Go(func() { w.store.watch(stop) })
	wg.Go(func() { w.hold.run(stop) })
	return &wg
}

// Ready returns nil while the worker can take jobs: it runs, every subscription is live, and the store answers. Else it says why not.
func (w *Worker) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != stateRunning {
		return errors.New([...]string{"not started", "", "stopping", "stopped"}[w.state])
	}
	if err := w.store.err(); err != nil {
		return fmt.Errorf("idempotency store: %w", err)
	}
	if len(w.runners) < len(w.cfg.Queues) {
		return errors.New("subscribing")
	}
	for _, q := range w.runners {
		if err := q.sub.Healthy(); err != nil {
			return fmt.Errorf("queue %q: %w", q.cfg.Name, err)
		}
	}
	return nil
}

func (w *Worker) enter(from, to state) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != from {
		return false
	}
	w.state = to
	return true
}

func (w *Worker) observe(e Event) { w.observer.Observe(e) }

// AbandonedError tells which handlers ignored the stop. Their jobs were given back and will run again elsewhere.
type AbandonedError struct{ Jobs []*Job }

func (e *AbandonedError) Error() string {
	names := make([]string, len(e.Jobs))
	for i, j := range e.Jobs {
		names[i] = j.Kind + " " + j.ID
	}
	return "handlers that ignored the stop were abandoned: " + strings.Join(names, ", ")
}

// stuckJobs is the set of jobs whose handlers were abandoned and have not returned.
type stuckJobs struct {
	mu   sync.Mutex
	jobs map[*Job]struct{}
}

func (s *stuckJobs) add(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = make(map[*Job]struct{})
	}
	s.jobs[j] = struct{}{}
}

func (s *stuckJobs) remove(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j)
}

func (s *stuckJobs) list() []*Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Job
	for j := range s.jobs {
		list = append(list, j)
	}
	sort.Slice(list, func(a, b int) bool { return list[a].ID < list[b].ID })
	return list
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
