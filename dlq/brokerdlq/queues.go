package brokerdlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// Config tells where the dead letters are. The zero value of each optional field means its default.
type Config struct {
	// Broker holds the queues. Required.
	Broker queue.Broker
	// Queues whose dead letters are looked at where a filter names no queue: a broker may hold queues of others. Dead-letter queues that do
	// not exist count as empty. Empty means all that the broker can list.
	Queues []string
	// Lease is how long a scan leases a message before it extends the lease. After a crash this long goes by before the broker delivers the
	// message again. Default 1 minute.
	Lease time.Duration
	// Idle is how long a dead-letter queue must deliver nothing to be taken for empty; three times as long if the broker counts
	// messages in it. Default 3 s.
	Idle time.Duration
	// MaxKept is the most messages that a scan keeps, leased and in memory, because they do not match or could not be published.
	// Default 10,000.
	MaxKept int
	// MaxKeptBytes is the most bytes of their bodies. Default 256 MiB.
	MaxKeptBytes int
	// Retention is how long the store of an import keeps an entry. A copy of a [Mirror] that is younger than half of that and unknown to the
	// store is stored: the store has lost it, or is another one. Default [dlq.DefaultRetention].
	Retention time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Idle = cmp.Or(c.Idle, 3*time.Second)
	c.MaxKept = cmp.Or(c.MaxKept, 10_000)
	c.MaxKeptBytes = cmp.Or(c.MaxKeptBytes, 256<<20)
	c.Retention = cmp.Or(c.Retention, dlq.DefaultRetention)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Broker == nil:
		return errors.New("broker is missing")
	case c.Lease < 0 || c.Idle < 0 || c.MaxKept < 0 || c.MaxKeptBytes < 0 || c.Retention < 0:
		return fmt.Errorf("lease %v, idle %v, max kept %d, max kept bytes %d, retention %v: must not be negative",
			c.Lease, c.Idle, c.MaxKept, c.MaxKeptBytes, c.Retention)
	}
	return nil
}

// ErrTooMany means that a scan stopped since it kept [Config.MaxKept] messages, or [Config.MaxKeptBytes]. They were given back.
var ErrTooMany = errors.New("too many dead letters to keep aside")

// Queues are the dead-letter queues of a broker. They are safe for concurrent use and hold nothing that needs closing.
type Queues struct {
	cfg Config
}

var _ dlq.Sink = (*Queues)(nil)

// New checks cfg. It does not call the broker.
func New(cfg Config) (*Queues, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("dead letters in the broker: %w", err)
	}
	return &Queues{cfg}, nil
}

// sources returns the queues whose dead letters f may select, sorted.
func (q *Queues) sources(ctx context.Context, f dlq.Filter) ([]string, error) {
	if f.Queue != "" {
		return []string{f.Queue}, nil
	}
	if len(q.cfg.Queues) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(q.cfg.Queues))), nil
	}
	infos, err := q.cfg.Broker.Queues(ctx)
	if err != nil {
		return nil, fmt.Errorf("find dead-letter queues: %w", err)
	}
	var names []string
	for _, info := range infos {
		if queue.IsDLQ(info.Name) {
			names = append(names, source(info.Name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// source returns the queue that a dead-letter queue belongs to.
func source(name string) string { return strings.TrimSuffix(name, queue.DLQ("")) }

// Depth counts the dead letters of each queue, leased ones included. Their causes are not known, and queues that the
// broker cannot count are left out.
func (q *Queues) Depth(ctx context.Context) (dlq.Depth, error) {
	var depth dlq.Depth
	names, err := q.sources(ctx, dlq.Filter{})
	if err != nil {
		return depth, err
	}
	for _, name := range names {
		n, known, err := q.count(ctx, name)
		if err != nil {
			return depth, err
		}
		if known {
			depth.Dead = append(depth.Dead, dlq.DeadDepth{Queue: name, Count: n})
		}
	}
	return depth, nil
}

// count returns how many dead letters a queue has, as far as the broker knows.
func (q *Queues) count(ctx context.Context, name string) (n int, known bool, err error) {
	d, err := q.cfg.Broker.Depth(ctx, queue.DLQ(name))
	if errors.Is(err, queue.ErrQueueNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("count dead letters of %s: %w", name, err)
	}
	return int(d.Ready.N + d.Delayed.N + d.InFlight.N), d.Ready.Known, nil
}
