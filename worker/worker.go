package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
)

// Worker runs jobs. Make one with [New] and run it once.
type Worker struct {
	cfg          Config
	kinds        *kinds
	pools        []*pool
	destinations *pools.Destinations
	storeHealth  *storeHealth
	sharedStore  idempotency.Transactional // set if claims and queues share a database
	deadLetters  dlq.Store                 // nil if dead letters only have a sink
	heartbeat    *heartbeat
	hold         *holder
	runners      []*queueRunner
	abandoned    abandonedJobs

	work           context.Context // of handlers; cancelled with ErrStopping when the stop grace is over
	settling       *bounded        // of calls to stores and broker; outlives work
	hardStop       chan struct{}   // closed when handlers that have not returned are abandoned
	slotGoroutines sync.WaitGroup  // of the slots' goroutines
	// unsubscribed is closed when the stop has ended the subscriptions. Jobs are given back only then: a broker that pushes would hand them
	// to this worker again, and count it.
	unsubscribed chan struct{}

	calling chan struct{} // hears of calls that begin

	mu          sync.Mutex
	state       state
	unavailable error // why the broker lets nobody subscribe yet
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
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("worker configuration: %w", err)
	}
	kinds, err := cfg.Registry.freeze()
	if err != nil {
		return nil, fmt.Errorf("registered kinds: %w", err)
	}
	if err := errors.Join(resolveKeyed(cfg, kinds), checkKinds(cfg, kinds)); err != nil {
		return nil, fmt.Errorf("registered kinds: %w", err)
	}
	poolList, err := buildPools(kinds.all, cfg.Concurrency)
	if err != nil {
		return nil, fmt.Errorf("bulkheads: %w", err)
	}
	w := &Worker{cfg: cfg, kinds: kinds, pools: poolList, hardStop: make(chan struct{}), unsubscribed: make(chan struct{}), calling: make(chan struct{}, 1)}
	w.deadLetters, _ = cfg.DeadLetters.(dlq.Store)
	w.storeHealth = newStoreHealth(w.observe)
	if cfg.Store != nil {
		w.storeHealth.ping = cfg.Store.Ping
		w.storeHealth.pausesAll = !slices.ContainsFunc(kinds.all, func(k *kind) bool { return !k.keyed })
		w.sharedStore = sharedDatabase(cfg)
	}
	w.heartbeat = newHeartbeat(w)
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
	cfg.OnTransition = func(t breaker.Transition) {
		w.hold.breakerChanged(t)
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

// Run works until ctx is done, then stops: it ends receiving, gives back what has not started, lets running handlers finish for
// StopGrace, cancels their contexts, and after StopHard abandons those that have not returned. It returns nil after a clean stop, an
// [*AbandonedError] naming abandoned jobs, or the error that made working impossible. Handlers find the values of ctx in their own. Run may be
// called once.
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

	w.warn()
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
	return err
}

// drain is the stop: see Run.
func (w *Worker) drain(receivers *sync.WaitGroup, endWork context.CancelCauseFunc, endSettling context.CancelFunc) error {
	timers := []*time.Timer{
		time.AfterFunc(*w.cfg.StopGrace, func() { endWork(ErrStopping) }),
		time.AfterFunc(*w.cfg.StopGrace+*w.cfg.StopHard, func() {
			close(w.hardStop)
			w.heartbeat.expireHandlers()
		}),
		time.AfterFunc(*w.cfg.StopGrace+*w.cfg.StopHard+settleGrace, endSettling),
	}
	receivers.Wait()
	err := w.unsubscribe()
	close(w.unsubscribed)
	w.heartbeat.attempts.Wait()
	for _, t := range timers {
		t.Stop()
	}
	if jobs := w.abandoned.list(); len(jobs) > 0 {
		return errors.Join(err, &AbandonedError{Jobs: jobs})
	}
	w.slotGoroutines.Wait()
	return err
}

// stopIsHard reports whether handlers have no time left to return.
func (w *Worker) stopIsHard() bool {
	select {
	case <-w.hardStop:
		return true
	default:
		return false
	}
}

// settleGrace is how long after the hard stop settlements may still try to reach an unavailable store or broker.
const settleGrace = 2 * time.Second

func (w *Worker) unsubscribe() error {
	errs := make([]error, len(w.runners))
	var wg sync.WaitGroup
	for i, q := range w.runners { // side by side: a broker that does not answer costs each its time
		wg.Go(func() {
			if err := q.sub.Close(); err != nil {
				errs[i] = fmt.Errorf("close subscription to %q: %w", q.cfg.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// startBackground runs what goes on beside the attempts. The heartbeat lives as long as settlements; everything else stops with receiving; releasing held jobs
// stops with receiving.
func (w *Worker) startBackground(stop, settling context.Context) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() { w.heartbeat.run(settling) })
	wg.Go(func() { w.cleanUp(stop) })
	wg.Go(func() { w.storeHealth.probe(stop) })
	wg.Go(func() { w.judge(settling) })
	wg.Go(func() { w.hold.run(stop) })
	wg.Go(func() { w.inspect(stop) })
	return &wg
}

// judgeEvery is how often the ages of calls in flight are looked at.
const judgeEvery = 500 * time.Millisecond

// judge opens the breakers of destinations that answer nothing, long before timeouts tell of it.
func (w *Worker) judge(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.calling:
		}
		for pause.For(ctx, judgeEvery) && w.destinations.Judge(time.Now()) { // quick calls cost no look
		}
	}
}

// Ready returns nil while the worker can take jobs: it runs, every subscription is live, and the store answers. Else it says why not.
func (w *Worker) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != stateRunning {
		return errors.New([...]string{"not started", "", "stopping", "stopped"}[w.state])
	}
	if err := w.storeHealth.err(); err != nil {
		return fmt.Errorf("idempotency store: %w", err)
	}
	if w.unavailable != nil {
		return w.unavailable
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

// AbandonedError tells which handlers ignored the stop. Their jobs were given back and will run again elsewhere.
type AbandonedError struct{ Jobs []*Job }

func (e *AbandonedError) Error() string {
	names := make([]string, len(e.Jobs))
	for i, j := range e.Jobs {
		names[i] = j.Kind + " " + j.ID
	}
	return "handlers that ignored the stop were abandoned: " + strings.Join(names, ", ")
}
