package worker

import (
	"slices"
	"time"

	"github.com/caisson-go/caisson/pools"
)

// Snapshot is a worker's state, for display and metrics.
type Snapshot struct {
	// Owner is the worker's name in claims.
	Owner string `json:"owner"`
	// Kinds are the registered kinds, with the limits in force.
	Kinds []struct {
		Name        string `json:"name"`
		MaxAttempts int    `json:"max_attempts"`
		// Keyed reports that each attempt takes a claim.
		Keyed bool `json:"keyed"`
		// Destination of jobs that name none. Empty for none.
		Destination string `json:"destination,omitempty"`
		// Timeout of an attempt that starts now.
		Timeout time.Duration `json:"timeout"`
		// Pool names the kind's bulkhead. Empty if only the slots limit it.
		Pool string `json:"pool,omitempty"`
	} `json:"kinds"`
	// Queues are the worker's queues with their slots.
	Queues []struct {
		Name  string `json:"name"`
		Slots int    `json:"slots"`
		InUse int    `json:"in_use"`
	} `json:"queues"`
	// Pools are the bulkheads. Kind is the kind's name, or "kinds without a bulkhead".
	Pools []struct {
		Kind string `json:"kind"`
		pools.BulkheadSnapshot
	} `json:"pools"`
	// InFlight is the number of leases.
	InFlight int `json:"in_flight"`
	// Abandoned is the number of abandoned handlers that still occupy a slot.
	Abandoned int `json:"abandoned"`
	// Destinations are those that are not simply closed and idle.
	Destinations []pools.DestinationSnapshot `json:"destinations"`
	// NotReady is the error of [Worker.Ready]. Empty while the worker is ready.
	NotReady string `json:"not_ready,omitempty"`
}

// Snapshot returns the worker's state. It is safe for concurrent use at any time.
func (w *Worker) Snapshot() Snapshot {
	s := Snapshot{
		Owner: w.cfg.Owner, InFlight: w.heartbeat.len(), Abandoned: len(w.abandoned.list()), Destinations: w.destinations.Unhealthy(time.Now()),
	}
	for _, k := range w.kinds.all {
		n := len(s.Kinds)
		if n > 0 && s.Kinds[n-1].Name == k.name {
			continue // another version of it
		}
		s.Kinds = slices.Grow(s.Kinds, 1)[:n+1]
		view := &s.Kinds[n]
		view.Name, view.MaxAttempts, view.Keyed = k.name, k.config.MaxAttempts, k.keyed
		view.Destination, view.Timeout = k.config.Destination, k.currentTimeout()
		if k.pool != nil {
			view.Pool = k.pool.name
		}
	}
	if err := w.Ready(); err != nil {
		s.NotReady = err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Queues = slices.Grow(s.Queues, len(w.runners))[:len(w.runners)]
	for i, r := range w.runners {
		view := &s.Queues[i]
		view.Name, view.Slots, view.InUse = r.cfg.Name, r.slots.size, r.slots.inUse()
	}
	s.Pools = slices.Grow(s.Pools, len(w.pools))[:len(w.pools)]
	for i, p := range w.pools {
		s.Pools[i].Kind, s.Pools[i].BulkheadSnapshot = p.name, p.Snapshot()
	}
	return s
}
