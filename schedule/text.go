package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// forms is what an error says about the way out.
const forms = "use exponential(1s, 2, 1h), fixed(30s, 2m, 10m), constant(30s), each with a jitter as last argument if you like, or default, queue or webhook"

// ParseBackoff reads a backoff from the form that configuration files use:
//
//	exponential(<base>, <factor>, <limit>[, <jitter>])   jitter full if none is named
//	fixed(<delay>, ...[, <jitter>])                      jitter x0.8..1.2 if none is named
//	constant(<delay>[, <jitter>])                        jitter x0.8..1.2 if none is named
//	default | queue | webhook                            the ready-made backoffs
//
// A jitter is none, full, equal, decorrelated or a factor such as x0.8..1.2. Durations are those of [ParseDuration].
func ParseBackoff(text string) (Backoff, error) {
	p, err := parseBackoff(strings.TrimSpace(text))
	if err != nil {
		return Backoff{}, fmt.Errorf("backoff %q: %w", text, err)
	}
	return p, nil
}

func parseBackoff(s string) (Backoff, error) {
	switch s {
	case "default":
		return DefaultBackoff, nil
	case "queue":
		return QueueBackoff, nil
	case "webhook":
		return WebhookBackoff, nil
	case "":
		return Backoff{}, errors.New("it is empty: " + forms)
	}
	name, rest, ok := strings.Cut(s, "(")
	args, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return Backoff{}, errors.New("it is neither a name nor a curve with its arguments in brackets: " + forms)
	}
	var items []string
	for item := range strings.SplitSeq(args, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	switch strings.TrimSpace(name) {
	case "exponential":
		return parseExponential(items)
	case "fixed":
		items, j, err := splitJitter(items, around)
		if err != nil {
			return Backoff{}, err
		}
		delays, err := parseDurations(items)
		if err != nil {
			return Backoff{}, err
		}
		return Fixed(delays, j)
	case "constant":
		items, j, err := splitJitter(items, around)
		if err != nil {
			return Backoff{}, err
		}
		delays, err := parseDurations(items)
		if err != nil {
			return Backoff{}, err
		}
		if len(delays) != 1 {
			return Backoff{}, fmt.Errorf("constant takes one delay, here are %d: use fixed for several", len(delays))
		}
		return Constant(delays[0], j)
	}
	return Backoff{}, fmt.Errorf("curve %q is unknown: %s", strings.TrimSpace(name), forms)
}

func parseExponential(items []string) (Backoff, error) {
	items, j, err := splitJitter(items, JitterFull)
	if err != nil {
		return Backoff{}, err
	}
	if len(items) != 3 {
		return Backoff{}, fmt.Errorf("exponential takes base, factor and limit, here are %d arguments: for example exponential(1s, 2, 1h)", len(items))
	}
	base, err := ParseDuration(items[0])
	if err != nil {
		return Backoff{}, fmt.Errorf("base: %w", err)
	}
	by, err := strconv.ParseFloat(items[1], 64)
	if err != nil {
		return Backoff{}, fmt.Errorf("factor %q is not a number", items[1])
	}
	limit, err := ParseDuration(items[2])
	if err != nil {
		return Backoff{}, fmt.Errorf("limit: %w", err)
	}
	return Exponential(base, by, limit, j)
}

// splitJitter takes a jitter off the end of items if one is there: everything that is neither a number nor a duration.
func splitJitter(items []string, unnamed Jitter) ([]string, Jitter, error) {
	last := items[len(items)-1]
	if last == "" || last[0] >= '0' && last[0] <= '9' || strings.ContainsRune("+-.", rune(last[0])) {
		return items, unnamed, nil
	}
	j, err := parseJitter(last)
	return items[:len(items)-1], j, err
}

func parseDurations(items []string) ([]time.Duration, error) {
	var ds []time.Duration
	for i, item := range items {
		d, err := ParseDuration(item)
		if err != nil {
			return nil, fmt.Errorf("delay %d: %w", i+1, err)
		}
		ds = append(ds, d)
	}
	return ds, nil
}

// String prints the backoff with all its parts in the form that [ParseBackoff] reads. The zero value prints as "default".
func (p Backoff) String() string {
	var args []string
	name := "default"
	switch p.shape {
	case exponential:
		name = "exponential"
		args = []string{FormatDuration(p.base), strconv.FormatFloat(p.factor, 'g', -1, 64), FormatDuration(p.limit)}
	case fixed:
		name = "fixed"
		for _, d := range p.list {
			args = append(args, FormatDuration(d))
		}
	case constant:
		name = "constant"
		args = []string{FormatDuration(p.base)}
	default:
		return name
	}
	return name + "(" + strings.Join(append(args, p.jitter.String()), ", ") + ")"
}

// MarshalText is String.
func (p Backoff) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is [ParseBackoff].
func (p *Backoff) UnmarshalText(text []byte) error {
	parsed, err := ParseBackoff(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
