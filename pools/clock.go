package pools

import (
	"math"
	"time"
)

// Inside the package a time is a stamp: nanoseconds since the process started, monotonic where the caller's times are.
// Eight bytes instead of twenty-four is what keeps a destination small.
var epoch = time.Now()

// never is a stamp before all others.
const never = math.MinInt64

func stamp(t time.Time) int64 { return int64(t.Sub(epoch)) }

// timeAt turns a stamp back into a time, relative to now: the wall clock may have been set since the stamp was taken.
func timeAt(now time.Time, at int64) time.Time {
	return now.Add(time.Duration(at - stamp(now)))
}

// add returns at+d without overflow. d must not be negative.
func add(at, d int64) int64 {
	if sum := at + d; sum >= at {
		return sum
	}
	return math.MaxInt64
}

// mul returns a*b without overflow. Neither may be negative.
func mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// slot numbers the spans of the given width, rounding down also before the epoch. It wraps; compare slots by difference.
func slot(at, width int64) uint32 {
	n := at / width
	if at%width < 0 {
		n--
	}
	return uint32(n)
}
