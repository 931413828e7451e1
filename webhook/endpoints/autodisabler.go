package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// AutoDisablerConfig configures an [AutoDisabler].
type AutoDisablerConfig struct {
	// Registry whose endpoints are disabled. Required.
	Registry *Registry
	// Endpoints finds them without asking the store, usually a [Mirror]. Required.
	Endpoints webhook.Endpoints
	// Client enqueues the notices: see [KindDisabled]. Nil enqueues none.
	Client *worker.Client
	// Queue of the notices. Empty means the client's.
	Queue string
	// Backoff is that of endpoints without their own. Zero means [schedule.WebhookBackoff].
	Backoff schedule.Backoff
	// Attempts is how many a delivery has. Zero means 8.
	Attempts int
	// Failures is how many calls must have failed. Zero means 8.
	Failures int
	// Window is how far back the fleet is looked at to tell whether we are the cause, and how long it must be well again. Nothing is disabled for
	// failures before the first window is over, nor an endpoint that has failed for less than two. Zero means 10 min.
	Window time.Duration
	// Fleet is how many endpoints must have been called within the window to tell. Zero means 20.
	Fleet int
	// Interval between two reports. Zero means 1 s.
	Interval time.Duration
	// Sweep is how often notices are looked for that a process died before it could enqueue them. Zero means 5 min.
	Sweep time.Duration
	// OnDisabled is told of each endpoint that this process disabled. It must be quick. May be nil.
	OnDisabled func(e webhook.Endpoint)
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

func (c AutoDisablerConfig) withDefaults() AutoDisablerConfig {
	if c.Backoff.IsZero() {
		c.Backoff = schedule.WebhookBackoff
	}
	c.Attempts = cmp.Or(c.Attempts, 8)
	c.Failures = cmp.Or(c.Failures, 8)
	c.Window = cmp.Or(c.Window, 10*time.Minute)
	c.Fleet = cmp.Or(c.Fleet, 20)
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Sweep = cmp.Or(c.Sweep, 5*time.Minute)
	if c.OnDisabled == nil {
		c.OnDisabled = func(webhook.Endpoint) {}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c AutoDisablerConfig) validate() error {
	var errs []error
	if c.Registry == nil || c.Endpoints == nil {
		errs = append(errs, errors.New("registry and endpoints are required"))
	}
	for name, value := range map[string]int64{
		"attempts": int64(c.Attempts), "failures": int64(c.Failures), "fleet": int64(c.Fleet),
		"window": int64(c.Window), "interval": int64(c.Interval), "sweep": int64(c.Sweep),
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s: must be positive; 0 means the default", name))
		}
	}
	return errors.Join(errs...)
}

// AutoDisabler disables endpoints that do not answer any more. It is told of every call, adds what all processes saw in the store, and disables
//
//   - one that answered 410, at once, with [webhook.ReasonGone];
//   - one that had at least 8 failed calls and no success for the length of its backoff, but not less than an hour, whichever jobs they were for,
//     with [webhook.ReasonFailing]. The process that disables it has itself seen it fail for an hour, in which silences count as 10 min at most: a
//     clock that jumps disables nobody, nor does a machine that slept. Failures are all calls that did not end in 2xx, those that met a 429 or another 4xx too, but not those that tell
//     nothing about the endpoint: our own stop, or an address that is never called. Failures of one event alone disable nobody.
//
// Of all processes one disables it, logs that, and enqueues one job of the kind [KindDisabled]. While more than half of the fleet fails at once
// it suspects us, and disables nobody for failures: see [AutoDisabler.Frozen]. It is safe for concurrent use.
type AutoDisabler struct {
	cfg   AutoDisablerConfig
	tally *tally

	mu   sync.Mutex
	gone map[string]*webhook.Attempt // answered 410, not disabled yet

	frozen atomic.Bool

	// The rest belongs to Run.
	unsure   map[string]time.Time // endpoints that it may have disabled, and with which time: see [AutoDisabler.ask]
	began    time.Time            // when the first step was
	reported time.Time            // when the last report was taken
	doubt    suspicion
	notices  map[string]worker.NewJob // to be enqueued, by id
	told     map[string]time.Time     // ids of notices that were enqueued
	swept    time.Time
	warned   time.Time
}

// NewAutoDisabler returns a disabler. Give its Observe to the sender.
func NewAutoDisabler(cfg AutoDisablerConfig) (*AutoDisabler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("webhook endpoints: disabler: %w", err)
	}
	return &AutoDisabler{
		cfg: cfg, tally: newTally(), gone: make(map[string]*webhook.Attempt),
		doubt:   suspicion{least: cfg.Fleet, calm: cfg.Window},
		unsure:  make(map[string]time.Time),
		notices: make(map[string]worker.NewJob), told: make(map[string]time.Time),
	}, nil
}

// Observe is told of a call, as [webhook.Config].Observe is. It never waits for the store.
func (k *AutoDisabler) Observe(a webhook.Attempt) {
	if a.Neutral() {
		return
	}
	k.tally.add(a.Endpoint, a.Event, a.At, a.Succeeded())
	if a.Response.Status == statusGone {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.gone[a.Endpoint] = &a
	}
}

const statusGone = 410

// Frozen reports whether nobody is disabled for failures, because most of the fleet fails and the cause may be ours.
func (k *AutoDisabler) Frozen() bool { return k.frozen.Load() }

// Run works until ctx ends, and then reports what is left. While the store is away it keeps what it saw, at most one record for each endpoint.
func (k *AutoDisabler) Run(ctx context.Context) error {
	tick := time.NewTicker(k.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTime)
			defer cancel()
			k.step(last, time.Now())
			return nil
		case <-tick.C:
			k.bounded(ctx)
		}
	}
}

// stepTime bounds one step, so that a store which does not answer holds nobody up.
const stepTime = 10 * time.Second

func (k *AutoDisabler) bounded(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	k.step(ctx, time.Now())
}

// step is everything that is due now.
func (k *AutoDisabler) step(ctx context.Context, now time.Time) {
	if k.began.IsZero() {
		k.began, k.reported = now, now
	}
	k.suspect(now)
	k.ask(ctx, now)
	k.closeGone(ctx, now)
	for _, h := range k.report(ctx, now) {
		k.judge(ctx, h, now)
	}
	k.sweep(ctx, now)
	k.notify(ctx, now)
}

// warns reports whether to log what may repeat at each step: once a minute.
func (k *AutoDisabler) warns(now time.Time) bool {
	if !k.warned.IsZero() && now.Sub(k.warned) < time.Minute {
		return false
	}
	k.warned = now
	return true
}

// suspect looks at the fleet as a whole.
func (k *AutoDisabler) suspect(now time.Time) {
	called, failing := k.tally.lately(now, k.cfg.Window)
	if !k.doubt.step(now, called, failing) {
		return
	}
	k.frozen.Store(k.doubt.raised)
	if k.doubt.raised {
		k.cfg.Logger.Warn("most webhook endpoints fail at once: no endpoint is disabled for it; look at our own network, name lookup, clock and root certificates",
			"called", called, "failing", failing, "within", k.cfg.Window)
		return
	}
	k.cfg.Logger.Info("webhook endpoints are well again: those that keep failing are disabled", "called", called, "failing", failing)
}
