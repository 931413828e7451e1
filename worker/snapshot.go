package worker

import (
	"time"

	"github.com/caisson-go/caisson/pools"
)

// Snapshot is a worker's state for display and metrics.
type Snapshot struct {
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
	s := Snapshot{InFlight: w.heart.len(), Abandoned: len(w.stuck.list()), Destinations: w.destinations.Unhealthy(time.Now())}
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
