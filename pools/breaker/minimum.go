package breaker

import (
	"math"
	"time"
)

// rare is how often calls fail at a destination that is well. At that rate a breaker must not open by chance.
const rare = 0.05

// calm is how long it must not: 100 months, in seconds.
const calm = 100 * 30.44 * 24 * 3600

// mostCalls bounds [minimumFor] where the threshold is so near to what is normal that no number of calls tells them apart.
const mostCalls = 1000

// minimumFor is how many calls a window must hold so that at a threshold of that many percent an independent 5 % of failures opens the
// breaker less than once in 100 months. By Chernoff's bound the share of windows of n calls in which p of them fail is at most
// exp(-n*D), with D = p ln(p/q) + (1-p) ln((1-p)/(1-q)) and q = 5 %; n/window of them end each second.
// Source: Mitzenmacher, Upfal: Probability and Computing, 4.2.
func minimumFor(percent int, window time.Duration) int {
	p := float64(percent) / 100
	if p <= rare {
		return mostCalls
	}
	d := p * math.Log(p/rare)
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-rare))
	}
	for n := 1; n < mostCalls; n++ {
		if float64(n)/window.Seconds()*calm*math.Exp(-float64(n)*d) < 1 {
			return n
		}
	}
	return mostCalls
}

// Reach is how many calls can complete within the window while each takes the whole timeout and that many can be in flight at once: a
// minimum of calls above it is never met by a destination that hangs. Zero places means that nobody knows, and any number is reached.
func (c Config) Reach(places int, timeout time.Duration) int {
	if places <= 0 || timeout <= 0 {
		return math.MaxInt
	}
	window := int64(c.WithDefaults().Window) * (buckets - 1) / buckets // a call leaves the count up to a bucket early
	rounds := window / int64(timeout)
	if rounds >= int64(math.MaxInt32) {
		return math.MaxInt
	}
	return int(rounds+1) * places
}
