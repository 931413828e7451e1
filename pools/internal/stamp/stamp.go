package stamp

import (
	"math"
	"time"
)

var epoch = time.Now()

// Never is before all other stamps.
const Never = math.MinInt64

// Of returns the stamp of a time.
func Of(t time.Time) int64 { return int64(t.Sub(epoch)) }

// Time turns a stamp back into a time, relative to now: the wall clock may have been set since the stamp was taken.
func Time(now time.Time, at int64) time.Time {
	return now.Add(time.Duration(at - Of(now)))
}

// Add returns at+d without overflow. d must not be negative.
func Add(at, d int64) int64 {
	if sum := at + d; sum >= at {
		return sum
	}
	return math.MaxInt64
}

// Mul returns a*b without overflow. Neither may be negative.
func Mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// Slot numbers the spans of the given width, rounding down also before the epoch. It wraps; compare slots by difference.
func Slot(at, width int64) uint32 {
	n := at / width
	if at%width < 0 {
		n--
	}
	return uint32(n)
}

// Moment numbers spans of about a millisecond (2^20 ns), in four bytes; it wraps, so take differences with [Since].
func Moment(at int64) uint32 { return uint32(at >> momentBits) } //nolint:gosec // it wraps

// Since is how long ago a moment was, to the safe side: up to a moment less. It is wrong after 26 days.
func Since(now int64, moment uint32) int64 {
	return int64(max(int32(Moment(now)-moment)-1, 0)) << momentBits //nolint:gosec // it wraps, which the difference bears
}

const momentBits = 20
