package worker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// Config configures a [Worker]. The zero value of an optional field means its default.
type Config struct {
	// Broker holds the queues. Required. The worker does not close it.
	Broker queue.Broker
	// Registry holds the kinds. Required.
	Registry *Registry
	// Queues to work on. Default: one queue named "default".
	Queues []QueueConfig
	// Store keeps claims and the attempt ledger. Nil runs every kind unkeyed and refuses a kind that asks for keys. With an
	// [idempotency.Joinable] store, handlers may write in the transaction that completes their claim.
	Store idempotency.Store
	// DeadLetters takes the jobs that are given up. Required. A full [dlq.Store] also holds jobs of sick destinations, tells late copies of
	// a dead job from other jobs with its id, and has its old entries removed. With a mere sink, Hold has no effect: jobs of a sick
	// destination are put back until it recovers or they expire.
	DeadLetters dlq.Sink
	// Destinations configures breakers and limits; package pools documents its defaults. OnTransition is called beside the observers. An
	// unset probe lease is the longest timeout of any kind, plus its grace, plus a minute; set it when you configure a running worker.
	Destinations pools.DestinationsConfig

	// Concurrency is the maximum number of jobs that run at once, over all queues. Default 20.
	Concurrency int
	// Lease is how long a lease or claim lasts without a heartbeat. Jobs of a crashed worker return after it. Default 30 s, minimum 1 s.
	Lease time.Duration
	// Heartbeat is how often leases and claims are extended. Default Lease/3. It must be below Lease/2.
	Heartbeat time.Duration
	// StopGrace is how long running handlers may continue after Run's context ends. Nil means 20 s; zero means none.
	StopGrace *time.Duration
	// StopHard is how long handlers have to return once StopGrace is over and their contexts are cancelled. Later ones are abandoned and
	// their jobs put back. Nil means 5 s; zero means none.
	StopHard *time.Duration
	// Hold configures when jobs of a sick destination leave the queue. It needs a [dlq.Store] in DeadLetters. Jobs of FIFO queues are
	// never held, since they would lose their place.
	Hold HoldConfig
	// UnknownKindAfter is how long jobs of an unknown kind are deferred before they become dead letters. It lets a rolling deploy bring
	// their handler. Default 15 min.
	UnknownKindAfter time.Duration
	// KeyRetention is how long a completed key is remembered. Default 48 h.
	KeyRetention time.Duration
	// DeadLetterRetention is how long a dead letter is kept after its last change. Default 14 days.
	DeadLetterRetention time.Duration
	// CleanUpInterval is how often expired keys and dead letters are removed. Default 1 min.
	CleanUpInterval time.Duration
	// Owner names this worker in claims, in at most 200 bytes. Default: host name and process id.
	Owner string
	// Observers receive every [Event], in order. Nil entries are ignored. Default none.
	Observers []Observer
	// Logger receives what an operator should read. Default slog.Default().
	Logger *slog.Logger
}

// QueueConfig configures one queue of a worker.
type QueueConfig struct {
	// Name of the queue. Required.
	Name string
	// Weight is the queue's share of the slots, relative to the other queues. Default 1, at most 1,000,000. Each queue gets at least one
	// slot.
	Weight int
	// Priority decides which queue gives way under overload: 0 comes first, 2 last. Each priority leaves a fifth of a kind's bulkhead and of
	// a destination's concurrency to each one before it, and waits while deferred jobs of those are due. Slots follow Weight alone.
	// Default 0.
	Priority int
	// DefaultKind is the kind of messages without an envelope, as foreign producers send them. Empty makes them dead letters.
	DefaultKind string
	// BlockOnDead keeps a dead job at the head of its FIFO group, so that nothing overtakes it. The group continues once the dead letter is
	// purged; if it is replayed, the replayed run takes its place. The worker checks after a quarter of the time since the job died, at
	// least a minute and at most half an hour. Only FIFO queues may block, and only with a [dlq.Store] in DeadLetters. False lets the group
	// continue; a replay then goes to its end.
	BlockOnDead bool
}

// HoldConfig configures when jobs of a destination leave the queue for the dead-letter store, in state held, and how they come back. Jobs of
// a destination that was forced open are held at once, unless both After and Backlog are zero.
type HoldConfig struct {
	// After is how long the breaker must have been open. Nil means 15 min; zero means never by time.
	After *time.Duration
	// Backlog is how often this worker defers jobs of one destination before it holds the rest, since a long backlog would only cycle
	// through the broker. Nil means 100; zero means never by backlog.
	Backlog *int
	// Interval is how often held jobs are considered for release. Default 1 s.
	Interval time.Duration
	// RampStart is how many jobs are released in the first interval after recovery. Each further interval doubles it. Default 10.
	RampStart int
	// RampMax is the maximum number of jobs released in one interval. Default 1000.
	RampMax int
}

const maxWeight = 1_000_000 // keeps products of weights and slots from overflowing

// WithDefaults fills in what zero means.
func (c Config) WithDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 20)
	c.Lease = cmp.Or(c.Lease, queue.DefaultLease)
	c.Heartbeat = cmp.Or(c.Heartbeat, c.Lease/3)
	c.UnknownKindAfter = cmp.Or(c.UnknownKindAfter, 15*time.Minute)
	c.StopGrace = cmp.Or(c.StopGrace, new(20*time.Second))
	c.StopHard = cmp.Or(c.StopHard, new(5*time.Second))
	c.Hold.After = cmp.Or(c.Hold.After, new(15*time.Minute))
	c.Hold.Backlog = cmp.Or(c.Hold.Backlog, new(100))
	c.Hold.Interval = cmp.Or(c.Hold.Interval, time.Second)
	c.Hold.RampStart = cmp.Or(c.Hold.RampStart, 10)
	c.Hold.RampMax = cmp.Or(c.Hold.RampMax, 1000)
	c.KeyRetention = cmp.Or(c.KeyRetention, idempotency.DefaultRetention)
	c.DeadLetterRetention = cmp.Or(c.DeadLetterRetention, dlq.DefaultRetention)
	c.CleanUpInterval = cmp.Or(c.CleanUpInterval, time.Minute)
	c.Owner = cmp.Or(c.Owner, defaultOwner())
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Observers = slices.DeleteFunc(slices.Clone(c.Observers), func(o Observer) bool { return o == nil })
	if len(c.Queues) == 0 {
		c.Queues = []QueueConfig{{Name: DefaultQueue}}
	}
	c.Queues = slices.Clone(c.Queues)
	for i := range c.Queues {
		c.Queues[i].Weight = cmp.Or(c.Queues[i].Weight, 1)
	}
	return c
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
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
	check(c.DeadLetters != nil, "dead letters: a sink or store is required, so that no job is lost")
	check(c.Concurrency > 0, "concurrency %d: must be at least 1", c.Concurrency)
	check(c.Lease >= time.Second, "lease %s: must be at least 1s", c.Lease)
	check(c.Heartbeat > 0 && c.Heartbeat < c.Lease/2, "heartbeat %s: must be positive and below half the lease of %s", c.Heartbeat, c.Lease)
	check(*c.StopGrace >= 0, "stop grace %s: must not be negative; 0 means none", *c.StopGrace)
	check(*c.StopHard >= 0, "stop hard %s: must not be negative; 0 means none", *c.StopHard)
	check(*c.Hold.After >= 0, "hold after %s: must not be negative; 0 means never by time", *c.Hold.After)
	check(*c.Hold.Backlog >= 0, "hold backlog %d: must not be negative; 0 means never by backlog", *c.Hold.Backlog)
	check(len(c.Owner) <= idempotency.MaxOwner, "owner of %d bytes: at most %d are kept with a claim", len(c.Owner), idempotency.MaxOwner)
	check(c.Concurrency >= len(c.Queues), "concurrency %d: each of the %d queues needs a slot", c.Concurrency, len(c.Queues))
	check(c.Hold.RampStart > 0 && c.Hold.RampMax >= c.Hold.RampStart, "hold ramp %d to %d: start must be positive and at most max", c.Hold.RampStart, c.Hold.RampMax)
	for name, d := range map[string]time.Duration{
		"hold interval": c.Hold.Interval, "unknown kind after": c.UnknownKindAfter,
		"key retention": c.KeyRetention, "dead letter retention": c.DeadLetterRetention, "clean-up interval": c.CleanUpInterval,
	} {
		check(d > 0, "%s %s: must be positive", name, d)
	}
	seen := make(map[string]bool)
	for i, q := range c.Queues {
		check(q.Name != "", "queues[%d]: name is empty", i)
		check(!seen[q.Name], "queues[%d]: %q is named twice", i, q.Name)
		check(q.Weight > 0 && q.Weight <= maxWeight, "queues[%d] %q: weight %d must be from 1 to %d", i, q.Name, q.Weight, maxWeight)
		seen[q.Name] = true
		check(q.Priority >= 0 && q.Priority < priorities, "queues[%d] %q: priority %d must be from 0, which comes first, to %d", i, q.Name, q.Priority, priorities-1)
		if c.Broker != nil {
			errs = append(errs, c.validateLimits(q, c.Broker.Capabilities(q.Name)))
		}
	}
	return errors.Join(errs...)
}

// validateLimits checks one queue against what its broker can do.
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
	if q.BlockOnDead {
		if !limits.FIFO {
			errs = append(errs, fmt.Errorf("queue %q: is no FIFO queue and has no groups to block: leave BlockOnDead out", q.Name))
		}
		if _, ok := c.DeadLetters.(dlq.Store); !ok {
			errs = append(errs, fmt.Errorf("queue %q: a blocked group waits until its dead letter is replayed or purged, which needs a dlq.Store in Config.DeadLetters", q.Name))
		}
	}
	return errors.Join(errs...)
}
