package pools

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"
)

// SlowLaneConfig bounds what slow destinations hold at once, all of them together, so that those that answer never wait for those that hang:
// a breaker only sees calls that have ended, and by the time that enough have, a few dozen hanging destinations hold every place.
//
// A destination is slow when the moving average of how long its calls take, failed ones included, is over the threshold, or when a call has
// been in flight for so long. Its calls, those in flight when it became slow too, count against the slots; a further one finds a slot or is
// refused with [ReasonSlowLaneFull]. One that none of whose calls has ended yet is new: its first call may also find one of as many slots
// again, further ones count as slow. So slow and new ones together hold at most twice the slots, and one that is neither is never refused.
//
// What takes longer than four times the threshold counts as four times: five quick answers bring a destination out of the lane, however long it hung.
// One that was left alone for thirty times the threshold is new again.
type SlowLaneConfig struct {
	// Slots is how many calls to slow destinations may run at once. Zero means that nothing is slow.
	Slots int
	// Over is the threshold. Zero means 1 s. 10 ms to 10 min.
	Over time.Duration
}

// WithDefaults fills in what zero means.
func (c SlowLaneConfig) WithDefaults() SlowLaneConfig {
	c.Over = cmp.Or(c.Over, time.Second)
	return c
}

func (c SlowLaneConfig) validate() error {
	switch {
	case c.Slots < 0 || c.Slots > 1_000_000:
		return fmt.Errorf("slots %d: use 1 to 1000000, or 0 for no lane", c.Slots)
	case c.Over < 10*time.Millisecond || c.Over > 10*time.Minute:
		return fmt.Errorf("over %v: use 10ms to 10m", c.Over)
	}
	return nil
}

// lane is the slow lane of a registry: its rules, which are immutable, and how much of it is taken, which goes on under new rules.
type lane struct {
	slots int64
	over  int64
	held  *atomic.Int64 // calls in flight of all destinations that are marked as laned
}

const (
	laneParts     = 1 << 10 // of the threshold, in which an average is kept
	laneWeight    = 4       // of the old average, less one: a new call counts a quarter
	laneCeiling   = 4       // times the threshold that a call counts at most
	laneProbation = 30      // times the threshold without a call, after which a slow destination is as good as new
	laneFirst     = 10      // part of the threshold that a new destination's call waits for the first answer
)

// pace is what the lane makes of a destination.
type pace uint8

const (
	paceQuick pace = iota
	paceNew
	paceSlow
)

// pace judges by what is known at now. The destination has a lane.
func (d *destination) pace(now int64) pace {
	l, lasted := d.s.lane, d.lasted(now)
	switch {
	case d.out > 0 && lasted > l.over:
		return paceSlow
	case d.took() == 0:
		return paceNew
	case d.took() <= laneParts:
		return paceQuick
	case d.out == 0 && lasted > laneProbation*l.over:
		return paceNew
	}
	return paceSlow
}

// quick says that no lane stands in the way of a call, and that none has to be told of it.
func (d *destination) quick(now int64) bool {
	return d.s.lane == nil || !d.laned() && d.pace(now) == paceQuick
}

// limit is how many calls may be in the lane beside one more of this destination.
func (l *lane) limit(p pace, out uint32) int64 {
	if p == paceNew && out == 0 {
		return 2 * l.slots
	}
	return l.slots
}

// laneWait is how long a call waits for a slot of the lane; 0 if it needs none or finds one. It takes nothing.
func (d *destination) laneWait(now int64) int64 {
	l := d.s.lane
	if l == nil {
		return 0
	}
	p := d.pace(now)
	if p == paceQuick {
		return 0
	}
	held := l.held.Load()
	if !d.laned() {
		held += int64(d.out)
	}
	switch {
	case held < l.limit(p, d.out):
		return 0
	case p == paceNew:
		return l.over / laneFirst
	}
	return l.over
}

// takeLane takes a slot if the destination needs one. The call has to begin, or leaveLane to be called.
func (d *destination) takeLane(now int64) bool {
	l := d.s.lane
	if l == nil {
		return true
	}
	p := d.pace(now)
	d.setLaned(p != paceQuick)
	if !d.laned() {
		return true
	}
	for limit := l.limit(p, d.out); ; {
		held := l.held.Load()
		if held >= limit {
			return false
		}
		if l.held.CompareAndSwap(held, held+1) {
			return true
		}
	}
}

// release ends a call and gives back its permit.
func (d *destination) release(now int64, group uint8) {
	d.leaveLane()
	d.end(now, group)
}

// leaveLane gives back the slot of a call that ended, or was not made after all.
func (d *destination) leaveLane() {
	if d.laned() {
		d.s.lane.held.Add(-1)
	}
}

// setLaned moves the calls in flight into the lane, or out of it.
func (d *destination) setLaned(on bool) {
	if d.laned() == on {
		return
	}
	d.marks ^= lanedMark
	if on {
		d.s.lane.held.Add(int64(d.out))
	} else {
		d.s.lane.held.Add(-int64(d.out))
	}
}

// paced adds a call that took so long to the average, and judges anew.
func (d *destination) paced(now, took int64) {
	l := d.s.lane
	if l == nil {
		return
	}
	parts := max(min(took, laneCeiling*l.over)*laneParts/l.over, 1)
	if d.took() != 0 {
		parts = (d.took()*(laneWeight-1) + parts + laneWeight - 1) / laneWeight
	}
	d.setTook(parts)
	d.setLaned(d.pace(now) != paceQuick)
}

// SlowLane describes the lane of a registry.
type SlowLane struct {
	Slots int `json:"slots"`
	// InUse counts the calls of slow and new destinations. It is above Slots while new ones are among them, or while calls are in flight that began before their destination became slow.
	InUse int `json:"in_use"`
}

// SlowLane describes the lane as it is now.
func (r *Destinations) SlowLane() SlowLane {
	s := SlowLane{InUse: int(r.held.Load())}
	if l := r.table.Load().lane; l != nil {
		s.Slots = int(l.slots)
	}
	return s
}
