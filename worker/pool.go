package worker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools"
)

// pool is the bulkhead of a kind, or the one that all kinds without a size share, with what it needs to space deferred jobs.
type pool struct {
	name string
	*pools.Bulkhead

	mu      sync.Mutex
	size    int
	average time.Duration // moving average of how long a place is taken
	next    time.Time     // when the next deferred job may expect a place
	moved   time.Time     // when a place was last taken or given back
}

const (
	minPoolDelay = 100 * time.Millisecond
	maxPoolDelay = time.Minute
)

// deferral returns how long a job that found the pool full is put back: the deferred jobs ahead of it divided by the rate at which places
// come free (size / average time taken), spread by jitter. Where places have not changed hands for longer than that, it is half of the time since
// they did, so that jobs which run for long are not asked about again and again. It is never below 100 ms nor above a minute and its jitter.
func (p *pool) deferral(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(max(p.average/time.Duration(p.size), time.Millisecond))
	if ahead := p.next.Sub(now); ahead > maxPoolDelay {
		p.next = now.Add(maxPoolDelay)
	}
	stuck := min(now.Sub(p.moved)/2, maxPoolDelay)
	return jitter(max(p.next.Sub(now), stuck, minPoolDelay))
}

// seated records that a place was taken.
func (p *pool) seated(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = now
}

// taken records that a place was given back, and how long it was taken (weight 1/8).
func (p *pool) taken(now time.Time, d time.Duration) {
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
			sum += k.config.Bulkhead + max(k.config.Waiting, 0) // whoever waits holds a slot, too
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
		name, size, waiting := k.name, k.config.Bulkhead, k.config.Waiting
		switch {
		case size == 0:
			name, size, waiting = sharedPool, left, -1
		case waiting == 0 && !shareLeft:
			waiting = min(size, left/len(sizedKinds))
		}
		if byName[name] == nil {
			b, err := pools.NewBulkhead(pools.BulkheadConfig{Size: size, Waiting: max(waiting, 0)})
			if err != nil {
				return nil, fmt.Errorf("kind %q: %w", k.name, err)
			}
			byName[name] = &pool{name: name, Bulkhead: b, size: size}
			list = append(list, byName[name])
		}
		k.pool = byName[name]
	}
	return list, nil
}

// sharedPool names the bulkhead of all kinds without a size. No kind can be called so: names have no spaces.
const sharedPool = "kinds without a bulkhead"
