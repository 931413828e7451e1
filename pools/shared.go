package pools

import (
	"math"
	"slices"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
	"github.com/caisson-go/caisson/pools/limiter"
)

// Peer is what the other workers of a fleet say of a destination that they share.
type Peer struct {
	// OpenUntil is when the last of their breakers lets calls through again. Zero means that none is open.
	OpenUntil time.Time
	// Users is how many workers use the destination, this one among them. Below 1 counts as 1.
	Users int
}

// peer is a Peer as a destination keeps it.
type peer struct {
	until int64
	users int64
}

// Share tells what is known of the fleet as of now, and forgets what it was told before; tell it nothing when nothing is known any more. Only
// destinations with Shared hear of it:
//
//   - While the breaker of another worker is open they refuse with [ReasonSharedOpen]. Their own breaker is not touched. An override to
//     [breaker.OverrideClosed] wins over it.
//   - Their rate limit is divided by the number of workers that use them.
//
// So nothing is ever refused for longer than the last thing heard said, and without a fleet all goes as if there were none.
func (r *Destinations) Share(now time.Time, peers map[string]Peer) {
	next := make(map[string]peer, len(peers))
	for raw, p := range peers {
		if name := NormalizeDestination(raw); name != "" {
			k := peer{until: stamp.Never, users: int64(min(max(p.Users, 1), math.MaxInt32))}
			if !p.OpenUntil.IsZero() {
				k.until = stamp.Of(p.OpenUntil)
			}
			next[name] = k
		}
	}
	r.shareMu.Lock()
	defer r.shareMu.Unlock()
	old := r.peers.Swap(&next)
	for name := range next {
		r.share(name, next)
	}
	if old != nil {
		for name := range *old {
			r.share(name, next)
		}
	}
}

func (r *Destinations) share(name string, peers map[string]peer) {
	s := r.home(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.m[name]; d != nil {
		d.setPeer(peers)
	}
}

// setPeer gives a destination what is known of it elsewhere, or takes it away.
func (d *destination) setPeer(peers map[string]peer) {
	p, known := peers[d.name]
	switch {
	case known && d.s.shared:
		d.option().peer = &p
	case d.opt != nil:
		d.opt.peer = nil
		d.slim()
	}
}

// made returns a new destination. Its shard is locked, so that it misses nothing that is shared.
func (r *Destinations) made(name string, s *settings) *destination {
	d := newDestination(name, s)
	if peers := r.peers.Load(); s.shared && peers != nil {
		d.setPeer(*peers)
	}
	return d
}

// sharedWait is how long calls wait for the breaker of another worker; 0 if they do not.
func (d *destination) sharedWait(now int64) int64 {
	if d.opt == nil || d.opt.peer == nil || d.circuit.Override() == breaker.OverrideClosed || d.opt.peer.until <= now {
		return 0
	}
	return d.opt.peer.until - now
}

// users is how many workers share the rate limit.
func (d *destination) users() int64 {
	if d.opt == nil || d.opt.peer == nil {
		return 1
	}
	return d.opt.peer.users
}

// rate is this worker's part of the rate limit, its burst included.
func (d *destination) rate() limiter.Rules { return d.s.rate.Divided(d.users()) }

// Shares reports whether any destination is to be shared.
func (r *Destinations) Shares() bool {
	r.configMu.Lock()
	defer r.configMu.Unlock()
	t := r.table.Load()
	if t.def.shared {
		return true
	}
	for _, s := range t.byName {
		if s.shared {
			return true
		}
	}
	for _, o := range r.own {
		if o.settings.Load().shared {
			return true
		}
	}
	return false
}

// SharedInUse names the shared destinations with a rate limit that were asked for within the last time span, sorted: those whose limit others have
// to leave a part of to this worker.
func (r *Destinations) SharedInUse(now time.Time, within time.Duration) []string {
	var names []string
	at := stamp.Of(now)
	r.each(func(s *shard) {
		for _, d := range s.m {
			if d.s.shared && d.s.rate.Limits() && time.Duration(int32(tick(at)-d.used))<<30 <= within { //nolint:gosec // it wraps
				names = append(names, d.name)
			}
		}
	})
	slices.Sort(names)
	return names
}
