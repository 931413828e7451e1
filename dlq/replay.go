package dlq

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
)

// Publisher is the part of a [queue.Broker] that takes messages.
type Publisher interface {
	Publish(ctx context.Context, queue string, pubs []queue.Publication) []queue.PublishResult
}

// Source is the part of a [Store] that a replay works on. One that has to search for entries also has
//
//	Prepare(ctx context.Context, f Filter, limit int) error
//
// which is called with the replay's own context before each Reserve, and returns when limit entries can be reserved, or all. One that reads many
// entries in one round trip also has
//
//	GetMany(ctx context.Context, ids []string) ([]Entry, error)
//
// which leaves out what it does not have, in any order. Dry runs use it.
type Source interface {
	Count(ctx context.Context, f Filter) (int, error)
	List(ctx context.Context, f Filter, after string, limit int) (entries []Entry, next string, err error)
	Get(ctx context.Context, id string) (Entry, error)
	Reserve(ctx context.Context, f Filter, r Reservation) ([]Entry, error)
	Resolve(ctx context.Context, owner string, rs []Resolution) []error
}

// ReplayConfig describes one replay.
type ReplayConfig struct {
	// Store holds the entries, usually a [Store]. Required.
	Store Source
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
	// means 250. A rate makes batches smaller, so that jobs come evenly.
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
	// Claims tells what has completed meanwhile: such jobs are left out. Nil means that nobody can tell, and that nothing is left out.
	Claims KeyReader
	// KeyRetention is how long a completed key is remembered: of jobs that died longer ago nobody can tell. Zero means
	// [idempotency.DefaultRetention].
	KeyRetention time.Duration
	// Force really runs jobs again whose key is completed, each under a key of its own: its key, #replay- and the run. What had completed
	// happens a second time.
	Force bool
	// Breakers holds jobs while their destination's breaker is open. The zero value holds none.
	Breakers BreakerWait
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
	c.BatchSize = cmp.Or(c.BatchSize, 250)
	if c.Rate > 0 {
		c.BatchSize = max(1, min(c.BatchSize, int(c.Rate/10)))
	}
	c.BatchBytes = cmp.Or(c.BatchBytes, 4<<20)
	c.Reservation = cmp.Or(c.Reservation, time.Minute)
	c.KeyRetention = cmp.Or(c.KeyRetention, idempotency.DefaultRetention)
	c.Breakers.Poll = cmp.Or(c.Breakers.Poll, time.Second)
	c.Canary = c.Canary.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c ReplayConfig) validate() error {
	for _, s := range c.Filter.StatesOrDead() {
		if s != StateDead {
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
	case c.KeyRetention < 0 || c.Breakers.For < 0 || c.Breakers.Poll < 0:
		return fmt.Errorf("key retention %v, wait for breakers %v, poll %v: must not be negative", c.KeyRetention, c.Breakers.For, c.Breakers.Poll)
	case c.Force && c.Claims == nil:
		return errors.New("force needs claims: without them nobody knows which keys are completed")
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
	// Completed is how many were left out because their key was completed meanwhile. They stay dead; their work is done.
	Completed int `json:"completed,omitempty"`
	// Forced is how many of Replayed run again although their key is completed, because that was asked for.
	Forced int `json:"forced,omitempty"`
	// Forgotten is how many were tried that died so long ago that keys which were completed since may be forgotten: nobody can tell whether
	// their work is done. Jobs without a known key, and all where there are no claims, count as well.
	Forgotten int `json:"forgotten,omitempty"`
	// Held is how many wait for their destination's breaker, by destination in HeldFor. At the end they are those that stayed dead.
	Held    int            `json:"held,omitempty"`
	HeldFor map[string]int `json:"held_for,omitempty"`
	// Unreported is why nobody knows which breakers are open.
	Unreported string `json:"unreported,omitempty"`
	// Queues and Destinations say how many jobs a dry run would send where.
	Queues       map[string]int `json:"queues,omitempty"`
	Destinations map[string]int `json:"destinations,omitempty"`
	// Left is how many still match at the end and were not tried: not reached, or reserved by another replay.
	Left int `json:"left"`
	// Canary is what became of the first jobs.
	Canary CanaryReport `json:"canary,omitzero"`
	// Problems says why entries failed, were refused or left out, for the first 100.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is why one entry was not replayed.
type Problem struct {
	ID      string `json:"id"`
	Refused bool   `json:"refused,omitempty"`
	// Completed says that the entry was left out because its work is done.
	Completed bool   `json:"completed,omitempty"`
	Error     string `json:"error"`
}

// maxProblems is the most problems that a report lists.
const maxProblems = 100

// Run replays until nothing is left that matches, ctx is done, or going on makes no sense. A done ctx ends it between two
// batches. The report holds for an error as well. It returns an error if entries failed, if a queue is missing, and
// [ErrCanaryFailed] or [ErrCanaryUndecided]; refused entries alone are no error. A Replay runs once.
func (r *Replay) Run(ctx context.Context) (Report, error) {
	p := &pass{
		ReplayConfig: r.cfg, report: Report{ID: r.cfg.ID, DryRun: r.cfg.DryRun}, seen: map[string]bool{}, missing: map[string]bool{},
		hold: hold{BreakerWait: r.cfg.Breakers, aside: map[string][]Resolution{}},
	}
	if start := p.Now(); p.Filter.Until.IsZero() || p.Filter.Until.After(start) {
		p.Filter.Until = start
	}
	err := p.run(ctx)
	if err != nil {
		return p.report, fmt.Errorf("replay %s: %w", p.ID, err)
	}
	return p.report, nil
}
