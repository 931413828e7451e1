package replay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
)

// Source is the part of a [dlq.Store] that a replay works on. A source may also be a [Preparer] or a [Loader].
type Source interface {
	Count(ctx context.Context, f dlq.Filter) (int, error)
	List(ctx context.Context, f dlq.Filter, after string, limit int) (entries []dlq.Entry, next string, err error)
	Get(ctx context.Context, id string) (dlq.Entry, error)
	Reserve(ctx context.Context, f dlq.Filter, r dlq.Reservation) ([]dlq.Entry, error)
	Resolve(ctx context.Context, owner string, rs []dlq.Resolution) []error
}

// Preparer is a [Source] that has to search for entries.
type Preparer interface {
	// Prepare returns once limit matching entries, or all, can be reserved. It is called with the replay's own context before each Reserve.
	Prepare(ctx context.Context, f dlq.Filter, limit int) error
}

// Loader is a [Source] that reads many entries in one round trip. Dry runs use it.
type Loader interface {
	// GetMany returns entries with their messages, in any order, and leaves out those that do not exist.
	GetMany(ctx context.Context, ids []string) ([]dlq.Entry, error)
}

// Config describes one replay.
type Config struct {
	// Store holds the entries, usually a [dlq.Store]. Required.
	Store Source
	// Broker takes the messages. Required unless DryRun.
	Broker dlq.Broker
	// Filter selects the entries, which must be dead. Entries stored after the replay began are left for the next one: a job that dies again
	// is not replayed forever.
	Filter dlq.Filter
	// ID names the replay as the owner of its reservations; two replays at once need two IDs. Empty means a random one.
	ID string
	// Queue takes the jobs. Empty means each entry's own queue.
	Queue string
	// Rate is the most jobs per second. Zero means no limit.
	Rate float64
	// ChunkSize is the most jobs published before they are marked, and so the most that a crash publishes twice. A rate makes chunks
	// smaller, so that jobs come evenly. Zero means 250.
	ChunkSize int
	// ChunkBytes is the most bytes of payloads in a chunk; a larger job goes alone. Zero means 4 MiB.
	ChunkBytes int
	// Reservation is how long a chunk is kept from other replays, and how long its publishing may take. After a crash its entries can be
	// replayed again once this has passed. Zero means one minute.
	Reservation time.Duration
	// DropDeadline replays jobs whose deadline has passed without one. Otherwise they are refused: they would only expire again.
	DropDeadline bool
	// Canary tries a few jobs first. The zero value tries none.
	Canary Canary
	// Claims knows which keys completed meanwhile; their jobs are left out. Nil means that nobody knows and nothing is left out.
	Claims KeyReader
	// KeyRetention is how long claims remember a completed key. Zero means [idempotency.DefaultRetention].
	KeyRetention time.Duration
	// Force runs jobs again whose key is completed, each under a new key: the old one, #replay- and the run. What completed before happens
	// a second time.
	Force bool
	// Breakers holds jobs while their destination's breaker is open. The zero value holds none.
	Breakers BreakerWait
	// DryRun changes nothing and reports what would be replayed and refused.
	DryRun bool
	// Progress, if set, is called in Run's goroutine after each chunk.
	Progress func(Report)
	// Now is the clock for deadlines. Nil means time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = "replay-" + rand.Text()
	}
	c.ChunkSize = cmp.Or(c.ChunkSize, 250)
	if c.Rate > 0 {
		c.ChunkSize = max(1, min(c.ChunkSize, int(c.Rate/10)))
	}
	c.ChunkBytes = cmp.Or(c.ChunkBytes, 4<<20)
	c.Reservation = cmp.Or(c.Reservation, time.Minute)
	c.KeyRetention = cmp.Or(c.KeyRetention, idempotency.DefaultRetention)
	c.Breakers.Poll = cmp.Or(c.Breakers.Poll, time.Second)
	c.Canary = c.Canary.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	for _, s := range c.Filter.StatesOrDead() {
		if s != dlq.StateDead {
			return fmt.Errorf("filter: %s entries cannot be replayed, only dead ones: held ones are released by workers", s)
		}
	}
	switch {
	case c.Store == nil:
		return errors.New("store is missing")
	case c.Broker == nil && !c.DryRun:
		return errors.New("broker is missing")
	case c.Rate < 0 || c.ChunkSize < 0 || c.ChunkBytes < 0 || c.Reservation < 0:
		return fmt.Errorf("rate %v, chunk size %d, chunk bytes %d, reservation %v: must not be negative",
			c.Rate, c.ChunkSize, c.ChunkBytes, c.Reservation)
	case c.KeyRetention < 0 || c.Breakers.For < 0 || c.Breakers.Poll < 0:
		return fmt.Errorf("key retention %v, wait for breakers %v, poll %v: must not be negative", c.KeyRetention, c.Breakers.For, c.Breakers.Poll)
	case c.Force && c.Claims == nil:
		return errors.New("force needs claims: without them nobody knows which keys are completed")
	}
	return c.Canary.validate()
}

// Replay publishes dead letters again. It runs once.
type Replay struct {
	cfg Config
}

// New checks cfg and returns the replay, not yet begun.
func New(cfg Config) (*Replay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return &Replay{cfg: cfg}, nil
}

// Run replays until nothing is left that matches, ctx is done, or going on makes no sense. A done ctx ends it between two chunks. The
// report holds for an error as well. Run returns an error if entries failed, if a queue is missing, and [ErrCanaryFailed],
// [ErrCanaryUndecided] or [ErrBreakerOpen]; refused entries alone are no error.
func (r *Replay) Run(ctx context.Context) (Report, error) {
	return newRunner(r.cfg).run(ctx)
}
