package worker

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
)

// priorities is how many a queue may have: 0 is critical, 1 sheddable_plus, 2 sheddable.
const priorities = 3

// pool is the bulkhead of a kind, or the one that all kinds without a size share, with what it needs to space deferred jobs.
type pool struct {
	name string
	*pools.Bulkhead
	waiting  int
	most     int             // of places, where an adaptive size is at its highest
	adaptive *adaptive.Limit // nil if the size is fixed

	mu      sync.Mutex
	size    int
	average time.Duration         // moving average of how long a place is taken
	next    [priorities]time.Time // when the next deferred job of each class may expect a place
	back    [priorities]time.Time // when the last one that was put back is due
	moved   time.Time             // when a place was last taken or given back
}

const (
	minPoolDelay = 100 * time.Millisecond
	maxPoolDelay = time.Minute
)

// deferral returns how long a job that found the pool full is put back: the deferred jobs ahead of it, those of classes before its own among them,
// divided by the rate at which places come free (size / average time taken), spread by jitter. Where places have not changed hands for longer than
// that, it is half of the time since they did, so that jobs which run for long are not asked about again and again. It is never below 100 ms nor above
// a minute and its jitter.
func (p *pool) deferral(now time.Time, class pools.Class) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	step := max(p.average/time.Duration(p.size), time.Millisecond)
	turn := now
	for _, next := range p.next[:class+1] {
		turn = later(turn, next)
	}
	p.next[class] = earlier(turn.Add(step), now.Add(maxPoolDelay))
	ahead := p.next[class].Sub(now)
	for i := range p.next[class+1:] {
		if behind := &p.next[int(class)+1+i]; behind.After(now) {
			*behind = earlier(behind.Add(step), now.Add(maxPoolDelay))
		}
	}
	stuck := min(now.Sub(p.moved)/2, maxPoolDelay)
	delay := jitter(max(ahead, stuck, minPoolDelay))
	p.back[class] = later(p.back[class], now.Add(delay))
	return delay
}

// outranks reports whether jobs of a class before this one have been put back and are not due yet, while something runs that they could wait for.
func (p *pool) outranks(now time.Time, class pools.Class) bool {
	if class == 0 || p.Bulkhead.Snapshot().InUse == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, back := range p.back[:class] {
		if back.After(now) {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// acquired records that a place was taken.
func (p *pool) acquired(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = now
}

// released records that a place was given back, and how long it was taken (weight 1/8).
func (p *pool) released(now time.Time, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = now
	if d == 0 {
		return // nothing ran
	}
	if p.average == 0 {
		p.average = d
		return
	}
	p.average += (d - p.average) / 8
}

// record tells an adaptive size how an attempt went that has its place still.
func (p *pool) record(start, now time.Time, o breaker.Outcome) {
	if p.adaptive == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.adaptive.Done(start, now, o, p.Bulkhead.Snapshot().InUse)
	if size != p.size && p.Resize(pools.BulkheadConfig{Size: size, Waiting: p.waiting}) == nil {
		p.size = size
	}
}

// buildPools gives each sized kind its bulkhead and lets the unsized ones share the slots that are left, so that no kind starves another.
func buildPools(all []*kind, slots int) ([]*pool, error) {
	sized := make(map[string]*kind)
	sum, unsized := 0, 0
	var errs []error
	for _, k := range all {
		first, seen := sized[k.name]
		switch {
		case seen && first.config.Bulkhead != k.config.Bulkhead:
			errs = append(errs, fmt.Errorf("kind %q: its versions have bulkheads of %d and %d; they share one", k.name, first.config.Bulkhead, k.config.Bulkhead))
		case k.config.Bulkhead == 0:
			unsized++
		case !seen:
			sized[k.name] = k
			sum += k.config.Bulkhead + *cmp.Or(k.config.Waiting, new(0)) // whoever waits holds a slot, too
		}
	}
	left := slots - sum
	if left < 0 {
		errs = append(errs, fmt.Errorf("sizes and waiting rooms sum up to %d, more than the worker's %d slots: lower them or raise the concurrency", sum, slots))
	} else if left == 0 && unsized > 0 {
		errs = append(errs, fmt.Errorf("sizes and waiting rooms sum up to all %d slots and leave none for the %d kinds without one: raise the concurrency", sum, unsized))
	}
	if err := errors.Join(errs...); err != nil || len(sized) == 0 {
		return nil, err
	}
	return makePools(all, left, unsized > 0)
}

func makePools(all []*kind, left int, shareLeft bool) ([]*pool, error) {
	byName := make(map[string]*pool)
	sizedKinds := make(map[string]bool)
	for _, k := range all {
		if k.config.Bulkhead > 0 {
			sizedKinds[k.name] = true
		}
	}
	var list []*pool
	for _, k := range all {
		name, size, waiting := k.name, k.config.Bulkhead, 0
		switch {
		case size == 0:
			name, size = sharedPool, left
		case k.config.Waiting != nil:
			waiting = *k.config.Waiting
		case !shareLeft:
			waiting = min(size, left/len(sizedKinds))
		}
		if byName[name] == nil {
			p, err := newPool(name, size, waiting, k.config)
			if err != nil {
				return nil, fmt.Errorf("kind %q: %w", k.name, err)
			}
			byName[name] = p
			list = append(list, p)
		}
		k.pool = byName[name]
	}
	return list, nil
}

func newPool(name string, size, room int, cfg KindConfig) (*pool, error) {
	b, err := pools.NewBulkhead(pools.BulkheadConfig{Size: size, Waiting: room})
	if err != nil {
		return nil, err
	}
	p := &pool{name: name, Bulkhead: b, waiting: room, most: size, size: size}
	if cfg.Bulkhead > 0 && cfg.Adaptive.Adapts() {
		limit := cfg.Adaptive
		limit.Max = size
		p.adaptive, err = adaptive.NewLimit(limit)
	}
	return p, err
}

// sharedPool names the bulkhead of all kinds without a size. No kind can be called so: names have no spaces.
const sharedPool = "kinds without a bulkhead"
