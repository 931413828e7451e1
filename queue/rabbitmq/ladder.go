package rabbitmq

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A delay is a sum of steps. Each step is a delay queue; the steps double from one second to longestStep, so any delay needs few queues.
// The longest step may be taken again and again, the others once.
const (
	ladderSteps  = 14
	shortestStep = time.Second
	longestStep  = shortestStep << (ladderSteps - 1) // about 2 h 17 min
	// mostDelay keeps sums from overflowing.
	mostDelay = 100 * 365 * 24 * time.Hour
)

// roundDelay returns the whole seconds that a message waits for a delay: never less, and at most a tenth or a second more, whichever is
// larger. Within that it takes the number that is the sum of the fewest steps: up to the longest step about two on average, at most four.
func roundDelay(delay time.Duration) time.Duration {
	delay = min(delay, mostDelay)
	exact := wholeSeconds(delay)
	most := int64((delay + max(delay/10, time.Second)) / time.Second)
	best := exact
	for bit := range ladderSteps {
		if sum := (exact>>bit + 1) << bit; sum <= most && stepsOf(sum) < stepsOf(best) {
			best = sum
		}
	}
	return time.Duration(best) * time.Second
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// stepsOf returns how many steps make a number of seconds.
func stepsOf(seconds int64) int {
	const longest = int64(longestStep / time.Second)
	return int(seconds/longest) + bits.OnesCount64(uint64(seconds%longest)) //nolint:gosec // not negative
}

// nextStep returns the longest step that is not longer than delay, rounded up to whole seconds.
func nextStep(delay time.Duration) time.Duration {
	seconds := wholeSeconds(min(delay, longestStep))
	return shortestStep << (bits.Len64(uint64(max(seconds, 1))) - 1) //nolint:gosec // positive
}

// stepAfter is [nextStep] of what is left of a delay after the given step; 0 if nothing can be left. Steps become shorter, so a clock
// that is wrong makes a delay at most twice as long. Only the longest follows itself. A last of 0 is unknown.
func stepAfter(last, left time.Duration) time.Duration {
	switch {
	case left <= 0:
		return 0
	case last <= 0 || last >= longestStep:
		return nextStep(left)
	case last <= shortestStep:
		return 0
	}
	return nextStep(min(left, last/2))
}

// lastStep returns the delay queue that a message came from last, or 0. The broker lists the last death first.
func (t *topology) lastStep(headers amqp.Table) time.Duration {
	deaths, _ := headers["x-death"].([]any)
	if len(deaths) == 0 {
		return 0
	}
	death, _ := deaths[0].(amqp.Table)
	name, _ := death["queue"].(string)
	text, ok := strings.CutPrefix(name, t.delayPrefix())
	if !ok {
		return 0
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(ms, 0), int64(mostDelay/time.Millisecond))) * time.Millisecond
}
