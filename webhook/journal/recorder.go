package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/internal/truncate"
	"github.com/caisson-go/caisson/webhook"
)

// RecorderConfig configures a [Recorder].
type RecorderConfig struct {
	// Store keeps the attempts. Required.
	Store Store
	// Buffer is how many attempts may wait to be written; further ones are dropped. Zero means 10,000.
	Buffer int
	// Batch is how many are written at once. Zero means 500.
	Batch int
	// Interval is how long an attempt waits for others at most, while the store keeps up. Zero means 1 s.
	Interval time.Duration
	// Events and Attempts are the retentions that the store is asked to expire by. Attempts must not go before their events: what was
	// delivered would look as if it never had been. Zero means 72 h each.
	Events, Attempts time.Duration
	// ExpireEvery is how often expired records are removed. Zero means 5 min.
	ExpireEvery time.Duration
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
	// OnDrop is told how many attempts were dropped. It may be called from several goroutines at once and must be quick. May be nil.
	OnDrop func(n int)
}

// WithDefaults fills in what zero means.
func (c RecorderConfig) WithDefaults() RecorderConfig {
	c.Buffer = cmp.Or(c.Buffer, 10_000)
	c.Batch = cmp.Or(c.Batch, 500)
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Events = cmp.Or(c.Events, 72*time.Hour)
	c.Attempts = cmp.Or(c.Attempts, 72*time.Hour)
	c.ExpireEvery = cmp.Or(c.ExpireEvery, 5*time.Minute)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.OnDrop == nil {
		c.OnDrop = func(int) {}
	}
	return c
}

func (c RecorderConfig) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("store: required")
	case c.Buffer < 0 || c.Batch < 0:
		return fmt.Errorf("buffer %d, batch %d: must be at least 1", c.Buffer, c.Batch)
	case c.Interval < 0 || c.ExpireEvery < 0 || c.Events < 0 || c.Attempts < 0:
		return fmt.Errorf("interval %s, expire every %s, events %s, attempts %s: must be positive", c.Interval, c.ExpireEvery, c.Events, c.Attempts)
	case c.Attempts < c.Events:
		return fmt.Errorf("attempts %s: must be at least the retention of events, %s", c.Attempts, c.Events)
	}
	return nil
}

// Recorder writes attempts behind the deliveries that made them. Observe it from the start; what waits is written while Run runs.
type Recorder struct {
	cfg     RecorderConfig
	waiting chan Attempt
	// Counters of attempts.
	written, dropped atomic.Int64
	// told is how many of the dropped the log knows of, and toldAt since when. Run's alone.
	told   int64
	toldAt time.Time
}

// NewRecorder returns a recorder.
func NewRecorder(cfg RecorderConfig) (*Recorder, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("webhook recorder: %w", err)
	}
	return &Recorder{cfg: cfg, waiting: make(chan Attempt, cfg.Buffer)}, nil
}

// maxExcerpt is how much of a response is kept with each attempt.
const maxExcerpt = 1 << 10

// Observe takes one attempt, as [webhook.Config.Observe] gives it. It never waits.
func (r *Recorder) Observe(a webhook.Attempt) {
	at := a.At
	if at.IsZero() {
		at = time.Now()
	}
	record := Attempt{
		Tenant: a.Tenant, Endpoint: a.Endpoint, Event: a.Event, Job: a.Job, Number: a.Number, At: at,
		Status: a.Response.Status, Phase: a.Response.Phase.String(), Duration: a.Response.Duration,
		Excerpt: truncate.Cut(a.Excerpt, maxExcerpt), Error: a.Err, RequestID: a.RequestID, Resent: a.Response.Resent, CutOff: a.CutOff,
	}
	select {
	case r.waiting <- record:
	default:
		r.drop(1)
	}
}

func (r *Recorder) drop(n int) {
	r.dropped.Add(int64(n))
	r.cfg.OnDrop(n)
}

// Written is how many attempts were written.
func (r *Recorder) Written() int64 { return r.written.Load() }

// Dropped is how many attempts were not, since the store did not keep up, or refused them.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

const (
	// writeTime bounds one write.
	writeTime = 10 * time.Second
	// drainTime bounds what is written after the stop.
	drainTime = 5 * time.Second
	// drainPause lies between two tries of it.
	drainPause = 100 * time.Millisecond
)

// Run writes what was observed, and removes what is expired, until ctx ends. Then it writes what still waits, for 5 s at most. What was not
// written by then is dropped.
func (r *Recorder) Run(ctx context.Context) error {
	expiry := make(chan struct{})
	go func() { defer close(expiry); r.expire(ctx) }()
	for r.write(ctx) {
		continue
	}
	r.drain(ctx)
	<-expiry
	return nil
}

// write writes one batch, and again while the store is unavailable. It returns false once ctx has ended.
func (r *Recorder) write(ctx context.Context) bool {
	batch, goOn := r.collect(ctx)
	for len(batch) > 0 {
		err := r.log(context.WithoutCancel(ctx), writeTime, batch)
		if !errors.Is(err, ErrUnavailable) {
			break
		}
		r.report()
		if !pause.For(ctx, r.cfg.Interval) {
			r.requeue(batch)
			return false
		}
	}
	r.report()
	return goOn
}

// requeue lets drain have a last try at a batch.
func (r *Recorder) requeue(batch []Attempt) {
	for i, a := range batch {
		select {
		case r.waiting <- a:
		default:
			r.drop(len(batch) - i)
			return
		}
	}
}

// collect waits for a full batch, or for what comes within the interval after the first.
func (r *Recorder) collect(ctx context.Context) (batch []Attempt, goOn bool) {
	select {
	case a := <-r.waiting:
		batch = append(batch, a)
	case <-ctx.Done():
		return nil, false
	}
	late := time.NewTimer(r.cfg.Interval)
	defer late.Stop()
	for len(batch) < r.cfg.Batch {
		select {
		case a := <-r.waiting:
			batch = append(batch, a)
		case <-late.C:
			return batch, true
		case <-ctx.Done():
			r.requeue(batch)
			return nil, false
		}
	}
	return batch, true
}

// log writes a batch. What can never be written is dropped.
func (r *Recorder) log(ctx context.Context, limit time.Duration, batch []Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := r.cfg.Store.Log(ctx, batch)
	switch {
	case err == nil:
		r.written.Add(int64(len(batch)))
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case !errors.Is(err, ErrUnavailable):
		r.drop(len(batch))
		r.cfg.Logger.Error("webhook attempts cannot be logged: dropped", "attempts", len(batch), "error", err)
	}
	return err
}

// drain writes what is left when the work has ended.
func (r *Recorder) drain(ctx context.Context) {
	defer r.report()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	for batch := r.take(r.cfg.Batch); len(batch) > 0; batch = r.take(r.cfg.Batch) {
		for errors.Is(r.log(ctx, drainTime, batch), ErrUnavailable) {
			if !pause.For(ctx, drainPause) {
				r.drop(len(batch) + len(r.take(len(r.waiting))))
				return
			}
		}
	}
}

// take returns up to n attempts that wait.
func (r *Recorder) take(n int) (batch []Attempt) {
	for len(batch) < n {
		select {
		case a := <-r.waiting:
			batch = append(batch, a)
		default:
			return batch
		}
	}
	return batch
}

// tellEvery is how often the log is told of drops.
const tellEvery = 30 * time.Second

// report logs that attempts were dropped, when that is news.
func (r *Recorder) report() {
	if n := r.dropped.Load(); n > r.told && time.Since(r.toldAt) >= tellEvery {
		r.cfg.Logger.Warn("webhook attempts were not logged: the store does not keep up; the deliveries are not affected", "dropped", n-r.told, "in_all", n)
		r.told, r.toldAt = n, time.Now()
	}
}

// expire removes what is past its retention until ctx ends.
func (r *Recorder) expire(ctx context.Context) {
	for pause.For(ctx, time.Duration(float64(r.cfg.ExpireEvery)*(0.8+0.4*rand.Float64()))) { //nolint:gosec // spreads load
		if err := r.cfg.Store.Expire(ctx, r.cfg.Events, r.cfg.Attempts); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("expired webhook events and attempts could not be removed; trying again", "error", err)
		}
	}
}
