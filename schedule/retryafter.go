package schedule

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds what a server may ask for. A longer hint is shortened to it.
const MaxRetryAfter = 4 * time.Hour

// hintSpread is the divisor of the share that Merge adds to a hint: up to a fifth.
const hintSpread = 5

// httpDates are the three forms of an HTTP date (RFC 9110, section 5.6.7).
var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC}

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3): seconds, or a date in any of the three
// HTTP forms. The hint lies between 0 and [MaxRetryAfter]. ok is false for everything else, also for a negative number and for
// a date that is not after now: such a header says nothing, and the normal backoff holds.
func ParseRetryAfter(header string, now time.Time) (hint time.Duration, ok bool) {
	s := strings.TrimSpace(header)
	if digits(s) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter, true // more digits than an int64 holds are still a number
		}
		return time.Duration(n) * time.Second, true
	}
	for _, layout := range httpDates {
		at, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if d := at.Sub(now); d > 0 {
			return min(d, MaxRetryAfter), true
		}
		return 0, false
	}
	return 0, false
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Merge joins a backoff's delay with a server's hint: never less than either. Where the hint decides, up to a fifth of it is
// added, since every caller that the server told "3 seconds" would otherwise come back in the same instant; jitter never takes
// anything off a hint. A hint of 0 or less changes nothing. r may be nil: see [Rand].
func Merge(backoff, hint time.Duration, r Rand) time.Duration {
	backoff = max(backoff, 0)
	if hint <= backoff {
		return backoff
	}
	high := hint
	if extra := hint / hintSpread; hint <= math.MaxInt64-extra {
		high += extra
	}
	return max(backoff, between(hint, high, r))
}
