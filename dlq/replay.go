package dlq

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/caisson-go/caisson/queue"
)

// Publisher is the part of a [queue.Broker] that takes messages.
type Publisher interface {
	Publish(ctx context.Context, queue string, pubs []queue.Publication) []queue.PublishResult
}

// ReplayConfig describes one replay.
type ReplayConfig struct {
	// Store holds the entries. Required.
	Store Store
	// Broker takes the messages. Required unless DryRun.
	Broker Publisher
	// Filter selects the entries; only dead ones can be replayed. Entries that are stored after the replay began are left for the
	// next one, so that a job that dies again is not replayed for ever.
	Filter Filter
	// ID names the replay as the owner of its reservations. Empty means a random one. Two replays at once need two IDs.
	ID string
	// Queue is where the jobs go. Empty means each entry's own queue.
	Queue string
	// Rate is the most jobs per second. Zero means no limit.
	Rate float64
	// BatchSize is the most jobs that are published before they are marked, and so the most that a crash publishes twice. Zero
	// means 100. A rate makes batches smaller, so that jobs come evenly.
	BatchSize int
	// BatchBytes is the most bytes of payloads in a batch; a larger job goes alone. Zero means 4 MiB.
	BatchBytes int
	// Reservation is how long a batch is kept from other replays, and how long its publishing may take. After a crash this long
	// goes by before the batch can be replayed again. Zero means one minute.
	Reservation time.Duration
	// DropDeadline replays jobs whose deadline has passed without one. Otherwise they are refused: they would only expire again.
	DropDeadline bool
	// Canary tries a few jobs first. The zero value tries none.
	Canary Canary
	// DryRun changes nothing and reports what would be replayed and refused.
	DryRun bool
	// Progress, if set, is called in Run's goroutine after each batch.
	Progress func(Report)
	// Now is the clock for deadlines. Nil means time.Now.
	Now func() time.Time
}

func (c ReplayConfig) withDefaults() ReplayConfig {
	if c.ID == "" {
		c.ID = "replay-" + rand.Text()
	}
	c.BatchSize = cmp.Or(c.BatchSize, 100)
	if c.Rate > 0 {
		c.BatchSize = max(1, min(c.BatchSize, int(c.Rate/10)))
	}
	c.BatchBytes = cmp.Or(c.BatchBytes, 4<<20)
	c.Reservation = cmp.Or(c.Reservation, time.Minute)
	c.Canary = c.Canary.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c ReplayConfig) validate() error {
	for _, s := range c.Filter.StatesOrDead() {
		if s != Dead {
			return fmt.Errorf("filter: %s entries cannot be replayed, only dead ones: held ones are released by workers", s)
		}
	}
	switch {
	case c.Store == nil:
		return errors.New("store is missing")
	case c.Broker == nil && !c.DryRun:
		return errors.New("broker is missing")
	case c.Rate < 0 || c.BatchSize < 0 || c.BatchBytes < 0 || c.Reservation < 0:
		return fmt.Errorf("rate %v, batch size %d, batch bytes %d, reservation %v: must not be negative",
			c.Rate, c.BatchSize, c.BatchBytes, c.Reservation)
	}
	return c.Canary.validate()
}

// Replay publishes dead letters again, each as the next run of its job. It publishes first, waits for the confirmation, then
// marks: what was not confirmed stays dead. It may be cancelled, repeated, and run several times at once.
type Replay struct {
	cfg ReplayConfig
}

// NewReplay checks cfg and returns the replay, not yet begun.
func NewReplay(cfg ReplayConfig) (*Replay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return &Replay{cfg: cfg}, nil
}

// Report tells how far a replay came.
type Report struct {
	// ID is the replay's.
	ID string `json:"id"`
	// DryRun says that nothing was changed: Replayed is what would have been.
	DryRun bool `json:"dry_run,omitempty"`
	// Matched is how many entries matched at the start.
	Matched int `json:"matched"`
	// Replayed is how many were confirmed by the queue. They are marked, unless the error says so.
	Replayed int `json:"replayed"`
	// Failed is how many the queue did not confirm. They stay dead; a confirmation that was lost makes a later replay a duplicate,
	// which the job's key makes harmless.
	Failed int `json:"failed"`
	// Refused is how many can never be published as they are. They stay dead.
	Refused int `json:"refused"`
	// Left is how many still match at the end and were not tried: not reached, or reserved by another replay.
	Left int `json:"left"`
	// Canary is what became of the first jobs.
	Canary CanaryReport `json:"canary,omitzero"`
	// Problems says why entries failed or were refused, for the first 100.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is why one entry was not replayed.
type Problem struct {
	ID      string `json:"id"`
	Refused bool   `json:"refused,omitempty"`
	Error   string `json:"error"`
}

// maxProblems is the most problems that a report lists.
const maxProblems = 100

// Run replays until nothing is left that matches, ctx is done, or going on makes no sense. A done ctx ends it between two
// batches. The report holds for an error as well. It returns an error if entries failed, if a queue is missing, and
// [ErrCanaryFailed] or [ErrCanaryUndecided]; refused entries alone are no error. A Replay runs once.
func (r *Replay) Run(ctx context.Context) (Report, error) {
	p := &pass{
		ReplayConfig: r.cfg, report: Report{ID: r.cfg.ID, DryRun: r.cfg.DryRun}, seen: map[string]bool{}, missing: map[string]bool{},
	}
	if start := p.Now(); p.Filter.Until.IsZero() || p.Filter.Until.After(start) {
		p.Filter.Until = start
	}
	if p.Rate > 0 {
		p.limiter = rate.NewLimiter(rate.Limit(p.Rate), p.BatchSize)
	}
	err := p.run(ctx)
	if err != nil {
		return p.report, fmt.Errorf("replay %s: %w", p.ID, err)
	}
	return p.report, nil
}
