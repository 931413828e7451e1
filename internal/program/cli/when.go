package cli

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// ParseWhen reads a point in time: RFC 3339, or a duration from now into the future (direction 1) or the past (-1).
func ParseWhen(text string, now time.Time, direction int) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if t.IsZero() { // is written where a time is not known, and would be taken for one that was not given
			return time.Time{}, fmt.Errorf("%q: is the time that stands for none: write a real one, or leave it out", text)
		}
		return t, nil
	}
	d, err := schedule.ParseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("%q: write a duration like 2h, or a time like %s", text, now.UTC().Format(time.RFC3339))
	}
	return now.Add(time.Duration(direction) * d), nil
}
