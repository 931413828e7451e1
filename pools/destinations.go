package pools

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/notify"
	"github.com/caisson-go/caisson/pools/internal/stamp"
	"github.com/caisson-go/caisson/pools/limiter"
)

// Overflow is the name of the destination that newcomers share while the registry is full of ones that cannot be forgotten.
const Overflow = "(overflow)"

// Destinations keeps a breaker and limits for each destination. It is safe for concurrent use. Names are normalised by
// [NormalizeDestination]; the empty name means no destination and is always admitted.
//
// It remembers at most Max destinations. Idle healthy ones are forgotten, a few at each access; they come back with a full retry
// budget. One that is open, overridden, throttled, in use, being ramped, over its rate or awaited by deferred jobs is never forgotten. When none can be, newcomers share the destination [Overflow] until there is room: its
// limits are the default ones, or an override of that name, and bound all of them together, its breaker too.
type Destinations struct {
	table    atomic.Pointer[table]
	configMu sync.Mutex      // one Configure or Set at a time
	own      map[string]*own // what Set was given; guarded by configMu
	total    *limiter.Limiter
	held     *atomic.Int64                   // calls in the slow lane
	shareMu  sync.Mutex                      // one Share at a time
	peers    atomic.Pointer[map[string]peer] // what Share was given; nil if nothing
	random   func() float64
	hooks    notify.Queue[breaker.Transition]

	seed     maphash.Seed
	shards   []shard
	count    atomic.Int64
	overflow shard
	next     atomic.Uint32 // where to look next for something to forget
	judged   atomic.Int64  // when Judge was last called
	armed    atomic.Int64  // since when it has been, without a gap
}

// shard is one part of the registry under one lock.
type shard struct {
	guard
	m   map[string]*destination
	own map[string]*own // what Set gave to names of this shard; nil if nothing
	ops uint32
}

const (
	maxShards     = 64
	perShard      = 256
	sweepEvery    = 64 // accesses of a shard between two sweeps
	sweepSome     = 8  // entries looked at by a sweep
	sweepForSpace = 64 // entries looked at to make room
	sweepShards   = 4  // shards looked at to make room
)

// NewDestinations returns an empty registry.
func NewDestinations(cfg DestinationsConfig) (*Destinations, error) {
	cfg = cfg.withDefaults()
	total, err := limiter.New(cfg.Rate)
	if err != nil {
		return nil, fmt.Errorf("destinations: total rate limit: %w", err)
	}
	held := new(atomic.Int64)
	t, err := newTable(cfg, total, held, cfg.Random)
	if err != nil {
		return nil, fmt.Errorf("destinations: %w", err)
	}
	r := &Destinations{
		total: total, held: held, random: cfg.Random, hooks: notify.Queue[breaker.Transition]{Fn: cfg.OnTransition}, seed: maphash.MakeSeed(), own: map[string]*own{},
	}
	r.table.Store(t)
	n := 1
	for n < maxShards && n*perShard < cfg.Max {
		n *= 2
	}
	r.shards = make([]shard, n)
	for i := range r.shards {
		r.shards[i].hooks, r.shards[i].m = &r.hooks, map[string]*destination{}
	}
	r.overflow.hooks, r.overflow.m = &r.hooks, map[string]*destination{Overflow: newDestination(Overflow, t.of(Overflow))}
	return r, nil
}

func newDestination(name string, s *settings) *destination {
	return &destination{name: name, s: s, tat: stamp.Never}
}

// Configure replaces the limits of all destinations, those in use too, except what [Destinations.Set] gave to some: of that only the zero
// fields change with the default. Permits, states and counts are kept. On an error nothing changes.
func (r *Destinations) Configure(now time.Time, cfg DestinationsConfig) error {
	r.configMu.Lock()
	defer r.configMu.Unlock()
	cfg = cfg.withDefaults()
	t, err := newTable(cfg, r.total, r.held, r.random)
	if err != nil {
		return fmt.Errorf("destinations: %w", err)
	}
	owns := make(map[*own]*settings, len(r.own))
	for _, o := range r.own {
		if owns[o], err = t.resolve(o.raw); err != nil {
			return fmt.Errorf("destinations: what was set for some does not go with the new default: %w", err)
		}
	}
	if err := r.total.Configure(cfg.Rate); err != nil {
		return fmt.Errorf("destinations: %w", err)
	}
	r.table.Store(t) // before the walk: whoever is created behind it has the new settings
	for o, s := range owns {
		o.settings.Store(s)
	}
	at := stamp.Of(now)
	r.each(func(s *shard) {
		for name, d := range s.m {
			d.configure(at, s.settings(name, t))
		}
	})
	return nil
}

// each calls fn for every shard, locked.
func (r *Destinations) each(fn func(*shard)) {
	for i := range r.shards {
		r.locked(&r.shards[i], fn)
	}
	r.locked(&r.overflow, fn)
}

func (r *Destinations) locked(s *shard, fn func(*shard)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s)
}

func (r *Destinations) shardOf(name string) *shard {
	return &r.shards[maphash.String(r.seed, name)&uint64(len(r.shards)-1)]
}

// home is the shard of a normalised name.
func (r *Destinations) home(key string) *shard {
	if key == Overflow {
		return &r.overflow
	}
	return r.shardOf(key)
}

// find returns the shard of a name, locked, the normalised name and its destination, nil if there is none.
func (r *Destinations) find(name string) (*shard, string, *destination) {
	s := r.shardOf(name)
	s.mu.Lock()
	if d := s.m[name]; d != nil { // only normalised names are keys
		return s, name, d
	}
	key := NormalizeDestination(name)
	if key == name && key != Overflow {
		return s, key, nil
	}
	s.mu.Unlock()
	s = r.home(key)
	s.mu.Lock()
	return s, key, s.m[key]
}

// peeked is find for reading: what Admit would use, which for a newcomer is a blank destination that is not kept.
func (r *Destinations) peeked(name string) (*shard, *destination) {
	s, key, d := r.find(name)
	if d != nil {
		return s, d
	}
	t := r.table.Load()
	if r.count.Load() < t.max {
		return s, r.made(key, s.settings(key, t))
	}
	s.mu.Unlock()
	s = &r.overflow
	s.mu.Lock()
	return s, s.m[Overflow]
}

// entry is find for writing: it makes a missing destination, or returns the overflow.
func (r *Destinations) entry(name string, at int64) (*shard, *destination) {
	s, key, d := r.find(name)
	t := r.table.Load()
	s.ops++
	if s.ops%sweepEvery == 0 || d == nil {
		r.sweep(s, at, t, sweepSome, d)
		r.sweepNext(s, at, t, sweepSome)
	}
	if d != nil {
		return s, d
	}
	room := r.reserve(t.max) || r.makeRoom(s, at, t) && r.reserve(t.max)
	if !room {
		s.mu.Unlock()
		s = &r.overflow
		s.mu.Lock()
		return s, s.m[Overflow]
	}
	d = r.made(strings.Clone(key), s.settings(key, t)) // key may be a piece of a long URL
	d.touch(at)
	s.m[d.name] = d
	return s, d
}

// reserve counts one more destination unless there are max.
func (r *Destinations) reserve(limit int64) bool {
	for {
		n := r.count.Load()
		if n >= limit {
			return false
		}
		if r.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// sweep looks at some entries of a locked shard, chosen at random by the map, and forgets the idle ones except keep.
func (r *Destinations) sweep(s *shard, at int64, t *table, some int, keep *destination) (gone int) {
	needed := r.count.Load() >= t.max
	for name, d := range s.m {
		if some--; some < 0 {
			break
		}
		if d != keep && d.evictable(at, t.idle, needed) {
			delete(s.m, name)
			gone++
		}
	}
	r.count.Add(-int64(gone))
	return gone
}

// sweepNext sweeps the shard whose turn it is, so that shards that nobody uses are swept too.
func (r *Destinations) sweepNext(held *shard, at int64, t *table, some int) (gone int) {
	o := &r.shards[r.next.Add(1)%uint32(len(r.shards))]
	if o == held || !o.mu.TryLock() { // never wait for a second lock
		return 0
	}
	defer o.mu.Unlock()
	return r.sweep(o, at, t, some, nil)
}

// makeRoom looks for something to forget in the locked shard and in a few others.
func (r *Destinations) makeRoom(s *shard, at int64, t *table) bool {
	gone := r.sweep(s, at, t, sweepForSpace, nil)
	for i := 0; gone == 0 && i < sweepShards; i++ {
		gone = r.sweepNext(s, at, t, sweepForSpace)
	}
	return gone > 0
}

// Len is how many destinations are remembered, the overflow not counted.
func (r *Destinations) Len() int { return int(r.count.Load()) }

// HookPanics is how often OnTransition has panicked.
func (r *Destinations) HookPanics() uint64 { return r.hooks.Panics() }
