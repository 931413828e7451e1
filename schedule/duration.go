package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var days = regexp.MustCompile(`^([0-9]+)d`)

// ParseDuration reads a duration as configuration spells it: the form of [time.ParseDuration], with whole days (d) allowed in
// front, for example 90s, 1h30m, 14d or 1d12h. A number without a unit is refused, 0 excepted: nobody means nanoseconds.
func ParseDuration(text string) (time.Duration, error) {
	s := strings.TrimSpace(text)
	if s == "" {
		return 0, errors.New("duration is empty: write a number with a unit, for example 30s")
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil && strings.Trim(s, "0") != "" {
		return 0, fmt.Errorf("duration %q has no unit: write %ss for seconds, or use ms, m, h or d", text, s)
	}
	var whole time.Duration
	if m := days.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64(1<<63-1)/int64(24*time.Hour) {
			return 0, fmt.Errorf("duration %q is too long", text)
		}
		whole = time.Duration(n) * 24 * time.Hour
		if s = s[len(m[0]):]; s == "" {
			return whole, nil
		}
		if s[0] == '-' || s[0] == '+' {
			return 0, fmt.Errorf("duration %q cannot be read: a sign may only stand in front", text)
		}
	}
	rest, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("duration %q cannot be read: write a number with a unit (ms, s, m, h, d), for example 30s or 1h30m", text)
	}
	if whole > 0 && rest > 1<<63-1-whole {
		return 0, fmt.Errorf("duration %q is too long", text)
	}
	return whole + rest, nil
}

// FormatDuration prints d in the short form that [ParseDuration] reads: 1h instead of 1h0m0s. Times of two days or more that
// are whole days are printed in days.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
