package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Rand draws random numbers. *rand.Rand of math/rand/v2 is one. Where a function takes a Rand, nil means the global source of
// math/rand/v2, which the runtime seeds anew for each process and which is safe for concurrent use.
type Rand interface {
	// Int64N returns a number from 0 to n-1, for n above 0.
	Int64N(n int64) int64
}

// Jitter spreads delays, so that jobs that failed together do not come back together. The zero value is [JitterNone].
type Jitter struct {
	kind jitterKind
	// low and high are the bounds of a factor.
	low, high float64
}

type jitterKind uint8

const (
	none jitterKind = iota
	full
	equal
	decorrelated
	factor
)

// The jitters without parameters.
var (
	// JitterNone leaves the delay as it is, exactly.
	JitterNone = Jitter{}
	// JitterFull draws between a tenth of the delay and the delay. The tenth is a floor: a dependency that has just failed is never
	// asked again at once, which drawing from 0 would allow.
	JitterFull = Jitter{kind: full}
	// JitterEqual draws between half the delay and the delay.
	JitterEqual = Jitter{kind: equal}
	// JitterDecorrelated draws between the curve's base and three times the previous delay, at most the curve's limit. Only for
	// exponential backoffs.
	JitterDecorrelated = Jitter{kind: decorrelated}
)

// maxFactor bounds the high side of a factor, so that no product overflows.
const maxFactor = 10

// JitterFactor draws between low and high times the delay. 0 <= low <= high <= 10, and high above 0.
func JitterFactor(low, high float64) (Jitter, error) {
	if !(low >= 0 && low <= high && high > 0 && high <= maxFactor) { // written so that NaN is refused
		return Jitter{}, fmt.Errorf("jitter x%v..%v: it must be x<low>..<high> with 0 <= low <= high <= %d and high above 0, for example x0.8..1.2",
			low, high, maxFactor)
	}
	return Jitter{kind: factor, low: low, high: high}, nil
}

// window returns the least and the most that apply makes of d.
func (j Jitter) window(d time.Duration) (low, high time.Duration) {
	switch j.kind {
	case full:
		return d / 10, d
	case equal:
		return d / 2, d
	case factor:
		return scale(d, j.low), scale(d, j.high)
	default:
		return d, d
	}
}

func (j Jitter) apply(d time.Duration, r Rand) time.Duration {
	low, high := j.window(d)
	return between(low, high, r)
}

// scale multiplies without touching d where the factor is 1.
func scale(d time.Duration, by float64) time.Duration {
	if by == 1 {
		return d
	}
	return time.Duration(float64(d) * by)
}

// between draws from low to high, both included.
func between(low, high time.Duration, r Rand) time.Duration {
	if high <= low {
		return low
	}
	n := int64(high-low) + 1
	if r == nil {
		return low + time.Duration(rand.Int64N(n))
	}
	return low + time.Duration(r.Int64N(n))
}

// needsCurve refuses jitter that has no meaning without an exponential curve.
func (j Jitter) needsCurve() error {
	if j.kind == decorrelated {
		return errors.New("decorrelated jitter needs an exponential curve: use full, equal or a factor such as x0.8..1.2")
	}
	return nil
}

// String returns the form that [ParseBackoff] reads: none, full, equal, decorrelated or x<low>..<high>.
func (j Jitter) String() string {
	switch j.kind {
	case full:
		return "full"
	case equal:
		return "equal"
	case decorrelated:
		return "decorrelated"
	case factor:
		return "x" + strconv.FormatFloat(j.low, 'g', -1, 64) + ".." + strconv.FormatFloat(j.high, 'g', -1, 64)
	default:
		return "none"
	}
}

// parseJitter reads what String prints.
func parseJitter(text string) (Jitter, error) {
	for _, j := range []Jitter{JitterNone, JitterFull, JitterEqual, JitterDecorrelated} {
		if text == j.String() {
			return j, nil
		}
	}
	if lowText, highText, ok := strings.Cut(strings.TrimPrefix(text, "x"), ".."); ok && strings.HasPrefix(text, "x") {
		low, err1 := strconv.ParseFloat(lowText, 64)
		high, err2 := strconv.ParseFloat(highText, 64)
		if err1 != nil || err2 != nil {
			return Jitter{}, fmt.Errorf("jitter %q: both ends must be numbers, for example x0.8..1.2", text)
		}
		return JitterFactor(low, high)
	}
	return Jitter{}, fmt.Errorf("jitter %q is unknown: use none, full, equal, decorrelated or a factor such as x0.8..1.2", text)
}
