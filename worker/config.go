package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// Config tells a worker what to work on and with what. The zero value of each optional field means its default.
type Config struct {
	// Broker holds the queues. Required. The worker does not close it.
	Broker queue.Broker
	// Registry holds the kinds. Required.
	Registry *Registry
	// Queues to work on. Default: one queue named "default".
	Queues []QueueConfig
	// Store keeps claims and the attempt ledger. Nil runs every kind unkeyed; a kind that asks for Keyed is then refused. One that is
	// [idempotency.Joinable] lets handlers write in the transaction that completes their claim.
	Store idempotency.Store
	// DeadLetters takes what was given up. Required. One that is a whole [dlq.Store] also lets jobs of sick destinations be held, tells late
	// copies of a dead job from other jobs of its id, and has its old entries removed. With a mere sink no job is held, whatever Hold says:
	// jobs of a sick destination are put back until it recovers or their max age is over.
	DeadLetters dlq.Sink
	// Destinations tunes breakers and limits. The zero value has the defaults of package pools. Its OnTransition is called beside the
	// observer. A probe lease that is not set is the longest timeout of a kind, its grace and a minute: set it too
	// when changing a running worker's.
	Destinations pools.DestinationsConfig

	// Concurrency is how many jobs this worker runs at once, over all queues. Default 20.
	Concurrency int
	// Lease is how long a lease or claim lasts without a sign of life: a crashed worker's jobs come back after it. Default 30 s.
	Lease time.Duration
	// Heartbeat is how often leases and claims are extended. Default a third of Lease; it must be below half of it.
	Heartbeat time.Duration
	// Stop says how a stop goes.
	Stop StopConfig
	// Hold says when the jobs of a sick destination are taken out of the queue. It needs DeadLetters to be a [dlq.Store]. Jobs of
	// FIFO queues are never held: they would leave their place in the order.
	Hold HoldConfig
	// UnknownKindAfter is how long jobs of an unknown kind are deferred, so that a rolling deploy can bring their handler, before they go
	// to the dead letters. Default 15 min.
	UnknownKindAfter time.Duration
	// Retention is how long completed keys and dead letters are kept.
	Retention RetentionConfig
	// Owner names this worker in claims, in at most 200 bytes. Default: host name and process id.
	Owner string
	// Observer is told what happens. Default none.
	Observer Observer
	// Logger gets what an operator should read. Default slog.Default().
	Logger *slog.Logger
}

// QueueConfig is one queue of a worker.
type QueueConfig struct {
	// Name of the queue. Required.
	Name string
	// Weight decides the queue's share of the slots. Default 1, at most 1,000,000. Each queue gets at least one slot.
	Weight int
	// Priority says who is put back first under overload. 0 comes first, 2 last: each class of queues leaves a fifth of a kind's bulkhead and of a
	// destination's concurrency to each class before it, and gives way while jobs of those have been put back and wait. The slots are
	// divided by Weight alone. Default 0.
	Priority int
	// DefaultKind is the kind of messages that foreign producers sent without an envelope. Empty sends those to the dead letters.
	DefaultKind string
	// OnDead says what becomes of the group of a job that died. Default Continue. Only FIFO queues can Block, and only where DeadLetters
	// is a [dlq.Store].
	OnDead OnDead
}

// OnDead says what becomes of the rest of a FIFO group when one of its jobs died.
type OnDead uint8

const (
	// OnDeadContinue lets the group go on without the dead job. A replay comes at the end of its group.
	OnDeadContinue OnDead = iota
	// OnDeadBlock keeps the dead job at the head of its group, so that nothing overtakes it. The group goes on once its dead letter was
	// purged; when it was replayed, the replayed run takes place there. The worker looks at it after a quarter of the time since the job died:
	// at least a minute, at most half an hour later.
	OnDeadBlock
)

// StopConfig says how a stop goes. A stop first ends receiving and gives back what has not started.
type StopConfig struct {
	// Grace is how long running handlers may finish undisturbed. Default 20 s; negative means none.
	Grace time.Duration
	// Hard is how long handlers have to return once their contexts were cancelled. Whoever has not is abandoned, its job given back.
	// Default 5 s.
	Hard time.Duration
}

// HoldConfig says when the jobs of a destination whose breaker is open leave the queue for the dead-letter store, in state held. Those of one
// that was forced open do so at once, unless both After and Backlog are negative.
type HoldConfig struct {
	// After is how long the breaker must have been open. Default 15 min; negative means that no length of time is enough.
	After time.Duration
	// Backlog is how many jobs of one destination this worker defers before it holds all further ones at once, since a long backlog
	// would only cycle through the broker. Default 100; negative means that no backlog is enough.
	Backlog int
	// Interval is how often held destinations are looked at for release. Default 1 s.
	Interval time.Duration
	// RampStart is how many jobs are released in the first interval after recovery; each further interval doubles it. Default 10.
	RampStart int
	// RampMax is the most jobs released in one interval. Default 1000.
	RampMax int
}

// RetentionConfig says how long ended records are kept.
type RetentionConfig struct {
	// Keys is how long a completed key is remembered. Default 48 h.
	Keys time.Duration
	// DeadLetters is how long a dead letter is kept after its last change. Default 14 days.
	DeadLetters time.Duration
	// Interval is how often expired records are removed. Default 1 min.
	Interval time.Duration
}

const maxWeight = 1_000_000 // so that no sum or product of weights and slots overflows

func (c Config) withDefaults() Config {
	setDefault(&c.Concurrency, 20)
	setDefault(&c.Lease, queue.DefaultLease)
	setDefault(&c.Heartbeat, c.Lease/3)
	setDefault(&c.UnknownKindAfter, 15*time.Minute)
	setDefault(&c.Stop.Grace, 20*time.Second)
	setDefault(&c.Stop.Hard, 5*time.Second)
	setDefault(&c.Hold.After, 15*time.Minute)
	setDefault(&c.Hold.Backlog, 100)
	setDefault(&c.Hold.Interval, time.Second)
	setDefault(&c.Hold.RampStart, 10)
	setDefault(&c.Hold.RampMax, 1000)
	setDefault(&c.Retention.Keys, idempotency.DefaultRetention)
	setDefault(&c.Retention.DeadLetters, dlq.DefaultRetention)
	setDefault(&c.Retention.Interval, time.Minute)
	setDefault(&c.Owner, defaultOwner())
	c.Stop.Grace = max(c.Stop.Grace, 0)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if len(c.Queues) == 0 {
		c.Queues = []QueueConfig{{Name: DefaultQueue}}
	}
	c.Queues = append([]QueueConfig(nil), c.Queues...)
	for i := range c.Queues {
		setDefault(&c.Queues[i].Weight, 1)
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Broker != nil, "broker: required")
	check(c.Registry != nil, "registry: required")
	check(c.DeadLetters != nil, "dead letters: a sink or store is required, so that nothing is lost")
	check(c.Concurrency > 0, "concurrency %d: must be at least 1", c.Concurrency)
	check(c.Lease >= time.Second, "lease %s: must be at least 1s", c.Lease)
	check(c.Heartbeat > 0 && c.Heartbeat < c.Lease/2, "heartbeat %s: must be positive and below half the lease of %s", c.Heartbeat, c.Lease)
	check(len(c.Owner) <= idempotency.MaxOwner, "owner of %d bytes: at most %d are kept with a claim", len(c.Owner), idempotency.MaxOwner)
	check(c.Concurrency >= len(c.Queues), "concurrency %d: each of the %d queues needs a slot", c.Concurrency, len(c.Queues))
	check(c.Hold.RampStart > 0 && c.Hold.RampMax >= c.Hold.RampStart, "hold ramp %d to %d: start must be positive and at most max", c.Hold.RampStart, c.Hold.RampMax)
	for name, d := range map[string]time.Duration{
		"stop hard": c.Stop.Hard, "hold interval": c.Hold.Interval, "unknown kind after": c.UnknownKindAfter,
		"key retention": c.Retention.Keys, "dead letter retention": c.Retention.DeadLetters, "retention interval": c.Retention.Interval,
	} {
		check(d > 0, "%s %s: must be positive", name, d)
	}
	seen := make(map[string]bool)
	for i, q := range c.Queues {
		check(q.Name != "", "queues[%d]: name is empty", i)
		check(!seen[q.Name], "queues[%d]: %q is named twice", i, q.Name)
		check(q.Weight > 0 && q.Weight <= maxWeight, "queues[%d] %q: weight %d must be from 1 to %d", i, q.Name, q.Weight, maxWeight)
		seen[q.Name] = true
		check(q.Priority >= 0 && q.Priority < pools.Classes, "queues[%d] %q: priority %d must be from 0, which comes first, to %d", i, q.Name, q.Priority, pools.Classes-1)
		check(q.OnDead <= OnDeadBlock, "queues[%d] %q: on dead %d: unknown", i, q.Name, q.OnDead)
		if c.Broker != nil {
			errs = append(errs, c.validateLimits(q, c.Broker.Capabilities(q.Name)))
		}
	}
	return errors.Join(errs...)
}

// validateLimits holds one queue against what its broker can do.
func (c Config) validateLimits(q QueueConfig, limits queue.Capabilities) error {
	var errs []error
	if longest := limits.MaxLease; longest > 0 && c.Lease > longest {
		errs = append(errs, fmt.Errorf("lease %s: queue %q allows at most %s: shorten the lease, "+
			"or raise the limit where the broker has one to raise (consumer_timeout of RabbitMQ less a margin of at most a minute; the 12 h of SQS are fixed)",
			c.Lease, q.Name, longest))
	}
	if limits.FIFO && c.Store == nil {
		errs = append(errs, fmt.Errorf("queue %q: is a FIFO queue and needs a store for claims and attempts: set Config.Store", q.Name))
	}
	if q.OnDead == OnDeadBlock {
		if !limits.FIFO {
			errs = append(errs, fmt.Errorf("queue %q: is no FIFO queue and has no groups to block: leave OnDead out", q.Name))
		}
		if _, ok := c.DeadLetters.(dlq.Store); !ok {
			errs = append(errs, fmt.Errorf("queue %q: a blocked group waits until its dead letter was replayed or purged, which only a dlq.Store in Config.DeadLetters can tell", q.Name))
		}
	}
	return errors.Join(errs...)
}
