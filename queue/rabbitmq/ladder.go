package rabbitmq

import (
	"math"
	"slices"
	"time"
)

// The ends of the delay ladder.
const (
	shortestDelay = time.Second
	longestDelay  = 24 * time.Hour
)

// ladder is the steps of delay, in whole milliseconds, rising.
type ladder []time.Duration

// newLadder makes a geometric ladder with the given number of steps in an octave.
func newLadder(octave int) ladder {
	var l ladder
	for i := 0; ; i++ {
		step := time.Duration(math.Round(1000*math.Pow(2, float64(i)/float64(octave)))) * time.Millisecond
		if step >= longestDelay {
			return append(l, longestDelay)
		}
		l = append(l, step)
	}
}

// snap returns the shortest step that is not below delay, or the longest if there is none.
func (l ladder) snap(delay time.Duration) time.Duration {
	i, _ := slices.BinarySearch(l, delay)
	return l[min(i, len(l)-1)]
}
