package pools

import (
	"math"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// The calls in flight are in two groups, so that the age of the oldest is known, to the safe side, in a few bytes: the older group takes no
// more calls, later ones join the younger. When the last call of the older group has ended, the younger takes its place. All of the older
// group started at since or before, and so the oldest call is at least as old.

// marks holds two marks beside a number of 14 bits, so that a destination stays within 128 bytes.
type marks uint16

const (
	groupMark  marks = 1 << 14 // which group is the older one
	lanedMark  marks = 1 << 15 // the calls in flight are counted in the slow lane
	numberMask       = groupMark - 1
)

func (d *destination) group() uint8 { return uint8(d.marks & groupMark >> 14) } //nolint:gosec // one bit

func (d *destination) laned() bool { return d.marks&lanedMark != 0 }

// took is how long calls take as the slow lane sees it, in parts of its threshold, a moving average; 0 if none has ended.
func (d *destination) took() int64 { return int64(d.marks & numberMask) }

func (d *destination) setTook(parts int64) { d.marks = d.marks&^numberMask | marks(parts) } //nolint:gosec // at most laneCeiling*laneParts

// begin takes a permit at now and returns its group.
func (d *destination) begin(now int64) uint8 {
	d.out++
	if d.out == 1 {
		d.since, d.young, d.old = stamp.Moment(now), 0, 1
		return d.group()
	}
	d.young = uint16(min(stamp.Moment(now)-d.since, unknown)) //nolint:gosec // bounded right here
	return d.group() ^ 1
}

// end gives back a permit of that group.
func (d *destination) end(now int64, group uint8) {
	d.out--
	if group == d.group() {
		d.old--
	}
	switch {
	case d.out == 0:
		d.since, d.old = stamp.Moment(now), 0
	case d.old == 0:
		d.marks ^= groupMark
		d.old = d.out
		if d.since += uint32(d.young); d.young == unknown {
			d.since = stamp.Moment(now)
		}
	}
}

// lasted is, to the safe side, how long the oldest call in flight has run or, if there is none, how long ago the last one ended.
func (d *destination) lasted(now int64) int64 {
	return stamp.Since(now, d.since)
}

// unknown stands for a minute and more between the groups.
const unknown = math.MaxUint16
