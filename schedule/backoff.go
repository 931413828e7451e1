package schedule

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// MaxDelay is the longest delay that a backoff may be built with, before jitter: a year.
const MaxDelay = 365 * 24 * time.Hour

// The ready-made backoffs.
var (
	// DefaultBackoff is what the zero Backoff stands for, and what "default" in a configuration means. A kind without a backoff of its own has [QueueBackoff]: 1 s, doubled each time up to 1 h, with full jitter.
	DefaultBackoff = must(Exponential(time.Second, 2, time.Hour, JitterFull))
	// QueueBackoff is what queues usually do: 30 s, 2 min, 10 min, for 4 attempts.
	QueueBackoff = must(Fixed([]time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute}, around))
	// WebhookBackoff is for receivers that nobody controls: 8 attempts over 5 h 51 min.
	WebhookBackoff = must(Fixed([]time.Duration{
		10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour,
	}, around))
)

// around is the jitter of fixed and constant delays that name none.
var around = must(JitterFactor(0.8, 1.2))

// Backoff is a backoff curve with its jitter. The zero value is [DefaultBackoff].
type Backoff struct {
	shape  shape
	base   time.Duration
	factor float64
	limit  time.Duration
	list   []time.Duration // never changed after construction
	jitter Jitter
}

type shape uint8

const (
	exponential shape = iota + 1
	fixed
	constant
)

// Exponential returns the backoff base x factor^(n-1) after failed attempt n, never above limit before jitter. base must be
// positive, factor between 1.1 and 100, limit between base and [MaxDelay].
func Exponential(base time.Duration, factor float64, limit time.Duration, j Jitter) (Backoff, error) {
	var errs []error
	if base <= 0 {
		errs = append(errs, fmt.Errorf("base is %s: it must be positive", FormatDuration(base)))
	}
	if !(factor >= 1.1 && factor <= 100) { // written so that NaN is refused
		errs = append(errs, fmt.Errorf("factor is %v: it must lie between 1.1 and 100; use constant for a curve that does not grow", factor))
	}
	if limit < base || limit > MaxDelay {
		errs = append(errs, fmt.Errorf("limit is %s: it must lie between the base %s and %s",
			FormatDuration(limit), FormatDuration(base), FormatDuration(MaxDelay)))
	}
	if len(errs) > 0 {
		return Backoff{}, fmt.Errorf("exponential backoff: %w", errors.Join(errs...))
	}
	return Backoff{shape: exponential, base: base, factor: factor, limit: limit, jitter: j}, nil
}

// Fixed returns the backoff that takes delays one after the other and repeats the last. Delays lie between 0 and [MaxDelay]; the
// last must be positive, so that a job which keeps failing never becomes a hot loop.
func Fixed(delays []time.Duration, j Jitter) (Backoff, error) {
	if len(delays) == 0 {
		return Backoff{}, errors.New("fixed backoff: no delays: name at least one, for example fixed(30s, 2m)")
	}
	for i, d := range delays {
		if d < 0 || d > MaxDelay {
			return Backoff{}, fmt.Errorf("fixed backoff: delay %d is %s: it must lie between 0s and %s", i+1, FormatDuration(d), FormatDuration(MaxDelay))
		}
	}
	if delays[len(delays)-1] == 0 {
		return Backoff{}, errors.New("fixed backoff: the last delay is 0s and would repeat without a pause: make it positive")
	}
	if err := j.needsCurve(); err != nil {
		return Backoff{}, fmt.Errorf("fixed backoff: %w", err)
	}
	return Backoff{shape: fixed, list: slices.Clone(delays), jitter: j}, nil
}

// Constant returns the backoff that always waits d, which must lie above 0 and not above [MaxDelay].
func Constant(d time.Duration, j Jitter) (Backoff, error) {
	if d <= 0 || d > MaxDelay {
		return Backoff{}, fmt.Errorf("constant backoff: delay is %s: it must be positive and at most %s", FormatDuration(d), FormatDuration(MaxDelay))
	}
	if err := j.needsCurve(); err != nil {
		return Backoff{}, fmt.Errorf("constant backoff: %w", err)
	}
	return Backoff{shape: constant, base: d, jitter: j}, nil
}

// Delay returns how long to wait after attempt number failed has failed. failed counts from 1; less means 1. prev is the delay
// before that attempt and matters only to decorrelated jitter; 0 means unknown. r may be nil: see [Rand].
func (p Backoff) Delay(failed int, prev time.Duration, r Rand) time.Duration {
	p = p.orDefault()
	if p.jitter.kind == decorrelated {
		if prev <= 0 && failed > 1 {
			prev = p.Nominal(failed - 1)
		}
		return p.decorrelate(prev, r)
	}
	return p.jitter.apply(p.Nominal(failed), r)
}

// decorrelate draws between the base and three times the previous delay, as "Exponential Backoff And Jitter" (AWS Architecture
// Blog, 2015) has it, but bounds the window before drawing: a draw that is cut afterwards piles up at the limit.
func (p Backoff) decorrelate(prev time.Duration, r Rand) time.Duration {
	prev = min(max(prev, p.base), p.limit)
	return between(p.base, min(3*prev, p.limit), r)
}

// Nominal returns the curve's delay without jitter.
func (p Backoff) Nominal(failed int) time.Duration {
	p = p.orDefault()
	n := max(failed, 1)
	switch p.shape {
	case fixed:
		return p.list[min(n, len(p.list))-1]
	case constant:
		return p.base
	default:
		// Pow reaches +Inf for large n, which the comparison takes as the limit.
		d := float64(p.base) * math.Pow(p.factor, float64(n-1))
		if d >= float64(p.limit) {
			return p.limit
		}
		return time.Duration(d)
	}
}

// Shortest returns the least that Delay can return after attempt number failed.
func (p Backoff) Shortest(failed int) time.Duration {
	p = p.orDefault()
	if p.jitter.kind == decorrelated {
		return p.base
	}
	low, _ := p.jitter.window(p.Nominal(failed))
	return low
}

// Longest returns the most that Delay can return after attempt number failed.
func (p Backoff) Longest(failed int) time.Duration {
	p = p.orDefault()
	if p.jitter.kind == decorrelated {
		return p.limit
	}
	_, high := p.jitter.window(p.Nominal(failed))
	return high
}

// Len returns the number of delays of a fixed list, and 0 for curves without an end. A list of n serves n+1 attempts before its
// last delay repeats.
func (p Backoff) Len() int { return len(p.list) }

// IsZero reports whether p is the zero value.
func (p Backoff) IsZero() bool { return p.shape == 0 }

// Equal reports whether both backoffs are the same.
func (p Backoff) Equal(q Backoff) bool {
	return p.shape == q.shape && p.base == q.base && p.factor == q.factor && p.limit == q.limit &&
		p.jitter == q.jitter && slices.Equal(p.list, q.list)
}

func (p Backoff) orDefault() Backoff {
	if p.IsZero() {
		return DefaultBackoff
	}
	return p
}

// Span returns the longest time that a job can spend waiting over all its attempts, the handlers' own time not counted. It stops
// at the longest time.Duration instead of overflowing. One attempt or fewer wait for nothing.
func (p Backoff) Span(attempts int) time.Duration {
	p = p.orDefault()
	var total time.Duration
	for n := 1; n < attempts; n++ {
		d := p.Longest(n)
		if n >= p.flatFrom() {
			// From here on every delay is the same.
			rest := time.Duration(attempts - n)
			if d > 0 && rest > (math.MaxInt64-total)/d {
				return math.MaxInt64
			}
			return total + rest*d
		}
		total += d
	}
	return total
}

// flatFrom returns an attempt from which on all delays are equal.
func (p Backoff) flatFrom() int {
	switch {
	case p.shape == fixed:
		return len(p.list)
	case p.shape == constant, p.jitter.kind == decorrelated:
		return 1
	}
	return 2 + int(math.Ceil(math.Log(float64(p.limit)/float64(p.base))/math.Log(p.factor)))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
