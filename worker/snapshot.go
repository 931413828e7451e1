package worker

import (
	"time"

	"github.com/caisson-go/caisson/pools"
)

// Snapshot is a worker's state for display and metrics.
type Snapshot struct {
	// Owner is the worker's name in claims.
	Owner  string          `json:"owner"`
	Kinds  []KindSnapshot  `json:"kinds"`
	Queues []QueueSnapshot `json:"queues"`
	Pools  []PoolSnapshot  `json:"pools"`
	// InFlight is how many leases are held.
	InFlight int `json:"in_flight"`
	// Abandoned is how many handlers ignore their cancelled context and still hold a slot.
	Abandoned int `json:"abandoned"`
	// Destinations are those that are not simply closed and idle.
	Destinations []pools.DestinationSnapshot `json:"destinations"`
	// NotReady says why no jobs can be taken; empty while they can.
	NotReady string `json:"not_ready,omitempty"`
}

// KindSnapshot is one kind with its limits as they are in force.
type KindSnapshot struct {
	Name        string `json:"name"`
	MaxAttempts int    `json:"max_attempts"`
	// Keyed says that a claim is taken before each attempt.
	Keyed bool `json:"keyed"`
	// Destination of jobs that name none; empty for none.
	Destination string `json:"destination,omitempty"`
	// Timeout is how long an attempt may run that starts now.
	Timeout time.Duration `json:"timeout"`
	// Pool is the name of its bulkhead; empty if only the slots bound it.
	Pool string `json:"pool,omitempty"`
}

// QueueSnapshot is the state of one queue in this worker.
type QueueSnapshot struct {
	Name  string `json:"name"`
	Slots int    `json:"slots"`
	InUse int    `json:"in_use"`
}

// PoolSnapshot is the state of one kind's bulkhead.
type PoolSnapshot struct {
	// Kind is the kind's name, or "kinds without a bulkhead".
	Kind string `json:"kind"`
	pools.BulkheadSnapshot
}

// Snapshot returns the worker's state now. It is safe for concurrent use at any time.
func (w *Worker) Snapshot() Snapshot {
	s := Snapshot{
		Owner: w.cfg.Owner, InFlight: w.heartbeat.len(), Abandoned: len(w.abandoned.list()), Destinations: w.destinations.Unhealthy(time.Now()),
	}
	for _, k := range w.kinds.all {
		if n := len(s.Kinds); n > 0 && s.Kinds[n-1].Name == k.name {
			continue // another version of it
		}
		s.Kinds = append(s.Kinds, k.snapshot())
	}
	if err := w.Ready(); err != nil {
		s.NotReady = err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.runners {
		s.Queues = append(s.Queues, QueueSnapshot{Name: q.cfg.Name, Slots: q.slots.size, InUse: q.slots.inUse()})
	}
	for _, p := range w.pools {
		s.Pools = append(s.Pools, PoolSnapshot{Kind: p.name, BulkheadSnapshot: p.Snapshot()})
	}
	return s
}

func (k *kind) snapshot() KindSnapshot {
	s := KindSnapshot{Name: k.name, MaxAttempts: k.config.MaxAttempts, Keyed: k.keyed, Destination: k.config.Destination, Timeout: k.currentTimeout()}
	if k.pool != nil {
		s.Pool = k.pool.name
	}
	return s
}
