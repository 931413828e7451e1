package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/truncate"
)

// Report is what one worker says of itself. Text that is not UTF-8 is mended.
type Report struct {
	// ID names the publisher: one worker of one process, no matter what others call themselves. Required; at most [MaxName] bytes.
	ID string `json:"id"`
	// Owner is the name that stands in the worker's claims.
	Owner string `json:"owner"`
	// Host and PID say where it runs.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Version of the program.
	Version string `json:"version"`
	// Broker is the kind of broker that it works on, for example "rabbitmq".
	Broker string `json:"broker"`
	// Started is when the worker began.
	Started time.Time `json:"started,omitzero"`
	// Sent is when the report was made. Required; all other times of the report are by the same clock.
	Sent time.Time `json:"sent"`
	// NotReady says why the worker takes no jobs; empty while it does. At most [MaxText] bytes are kept.
	NotReady string `json:"not_ready,omitempty"`
	// InFlight is how many leases it holds.
	InFlight int `json:"in_flight"`
	// Abandoned is how many handlers ignore their cancelled contexts.
	Abandoned int `json:"abandoned"`

	Queues []Queue `json:"queues,omitempty"`
	// Kinds are those that the worker has a handler for.
	Kinds []Kind `json:"kinds,omitempty"`
	Pools []Pool `json:"pools,omitempty"`
	// Destinations are those that are not simply closed.
	Destinations []Destination `json:"destinations,omitempty"`
	// More is how many destinations were left out because there are more than [MaxDestinations].
	More int `json:"more,omitempty"`

	// Shared are the destinations with a rate limit that this worker uses and that workers share, under their normalised names.
	Shared []string `json:"shared,omitempty"`
	// MoreShared is how many of them were left out because there are more than [MaxShared].
	MoreShared int `json:"more_shared,omitempty"`

	// At is when the status store took the report, and Now when it handed it out, both by its own clock. The status store sets them.
	At  time.Time `json:"at,omitzero"`
	Now time.Time `json:"now,omitzero"`
}

// Queue is one queue as a worker works it.
type Queue struct {
	Name  string `json:"name"`
	Slots int    `json:"slots"`
	InUse int    `json:"in_use"`
}

// Kind is one kind of job as a worker runs it.
type Kind struct {
	Name        string `json:"name"`
	MaxAttempts int    `json:"max_attempts"`
	// Keyed says that a claim is taken before each attempt.
	Keyed bool `json:"keyed"`
	// Destination of jobs that name none; empty for none.
	Destination string `json:"destination,omitempty"`
	// Pool is the name of its bulkhead; empty if only the worker's slots bound it.
	Pool string `json:"pool,omitempty"`
}

// Pool is the bulkhead of one kind, or of all kinds that have none of their own.
type Pool struct {
	Name    string `json:"name"`
	Size    int    `json:"size"`
	InUse   int    `json:"in_use"`
	Waiting int    `json:"waiting"`
}

// Destination is one that is open, half-open, forced or throttled.
type Destination struct {
	// Name is normalised.
	Name string `json:"name"`
	// State is that of the breaker: closed, open or half_open.
	State string `json:"state"`
	// Override is an operator's word: forced_open or forced_closed; empty for none.
	Override string `json:"override,omitempty"`
	// Reason is why a job would be refused now, for example breaker_open or throttled; empty if it would not be.
	Reason string `json:"reason,omitempty"`
	// Since is when the breaker left closed; zero while it is closed.
	Since time.Time `json:"since,omitzero"`
	// Next is when the next job may try, a probe if the breaker is open; zero if one may now.
	Next time.Time `json:"next,omitzero"`
	// Waiting is about how many jobs this worker has put back that are not due yet.
	Waiting int `json:"waiting"`
}

// What a report keeps at the most.
const (
	MaxDestinations = 200
	MaxShared       = 500
	MaxKinds        = 500 // and as many pools
	MaxQueues       = 500
	MaxText         = 500 // bytes of NotReady
	MaxName         = 300 // bytes of every name
)

// bounded returns r as status stores keep it. r itself is not changed.
func (r Report) bounded() Report {
	for _, s := range []*string{&r.ID, &r.Owner, &r.Host, &r.Version, &r.Broker} {
		*s = truncate.Cut(*s, MaxName)
	}
	r.NotReady = truncate.Cut(r.NotReady, MaxText)
	r.Queues = slices.Clone(r.Queues[:min(len(r.Queues), MaxQueues)])
	for i := range r.Queues {
		r.Queues[i].Name = truncate.Cut(r.Queues[i].Name, MaxName)
	}
	r.Kinds = slices.Clone(r.Kinds[:min(len(r.Kinds), MaxKinds)])
	for i, k := range r.Kinds {
		r.Kinds[i].Name, r.Kinds[i].Pool, r.Kinds[i].Destination = truncate.Cut(k.Name, MaxName), truncate.Cut(k.Pool, MaxName), truncate.Cut(k.Destination, MaxName)
	}
	r.Pools = slices.Clone(r.Pools[:min(len(r.Pools), MaxKinds)])
	for i := range r.Pools {
		r.Pools[i].Name = truncate.Cut(r.Pools[i].Name, MaxName)
	}
	if over := len(r.Shared) - MaxShared; over > 0 {
		r.Shared = r.Shared[:MaxShared]
		r.MoreShared += over
	}
	r.Shared = slices.Clone(r.Shared)
	for i := range r.Shared {
		r.Shared[i] = truncate.Cut(r.Shared[i], MaxName)
	}
	r.Destinations = slices.Clone(r.Destinations)
	if over := len(r.Destinations) - MaxDestinations; over > 0 {
		slices.SortStableFunc(r.Destinations, func(a, b Destination) int { return cmp.Compare(b.badness(), a.badness()) })
		r.Destinations = r.Destinations[:MaxDestinations]
		r.More += over
	}
	slices.SortFunc(r.Destinations, func(a, b Destination) int { return strings.Compare(a.Name, b.Name) })
	for i := range r.Destinations {
		r.Destinations[i].Name = truncate.Cut(r.Destinations[i].Name, MaxName)
	}
	return r
}

// badness orders destinations: what refuses everything comes first, and among equals what has more jobs waiting.
func (d Destination) badness() int {
	const class = 1 << 40
	n := min(d.Waiting, class-1)
	switch {
	case d.Override == "forced_open":
		return 4*class + n
	case d.State == "open":
		return 3*class + n
	case d.State == "half_open":
		return 2*class + n
	case d.Reason != "":
		return class + n
	}
	return n
}

// Sorted sorts reports by Owner and ID, in place, for status stores.
func Sorted(reports []Report) []Report {
	slices.SortFunc(reports, func(a, b Report) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.ID, b.ID))
	})
	return reports
}
