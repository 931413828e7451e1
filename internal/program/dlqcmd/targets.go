package dlqcmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// targetsText returns "3 jobs to queues mail (2), hooks (1), for destinations shop (3)" for a dry run.
func targetsText(r replay.Report) string {
	text := fmt.Sprintf("%d jobs", r.Replayed)
	if len(r.Queues) > 0 {
		text += " to queues " + counted(r.Queues)
	}
	if len(r.Destinations) > 0 {
		text += ", for destinations " + counted(r.Destinations)
	}
	return text
}

// leftOut says what a dry run found that would not simply be replayed.
func leftOut(r replay.Report, plan replay.Config) (notes []string) {
	if r.Held > 0 {
		notes = append(notes, fmt.Sprintf("%d held until breakers close, for %s", r.Held, counted(r.HeldFor)))
	}
	if r.Refused > 0 {
		notes = append(notes, fmt.Sprintf("%d refused", r.Refused))
	}
	if r.Completed > 0 {
		notes = append(notes, fmt.Sprintf("%d completed meanwhile and left out", r.Completed))
	}
	if r.Forced > 0 {
		notes = append(notes, fmt.Sprintf("%d of them have completed meanwhile and run again", r.Forced))
	}
	switch {
	case r.Forgotten == 0:
	case plan.Claims == nil:
		notes = append(notes, "nobody can tell what has completed meanwhile: there is no claim store")
	default:
		notes = append(notes, fmt.Sprintf("nobody can tell whether %d of them have completed meanwhile: they died more than idempotency.retention (%s) ago, or have no key",
			r.Forgotten, plan.KeyRetention))
	}
	return notes
}

// counted lists the names with their numbers, largest first, at most ten.
func counted(numbers map[string]int) string {
	names := slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		if numbers[a] != numbers[b] {
			return numbers[b] - numbers[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(len(names), 10)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", cli.OneLine(name), numbers[name]))
	}
	if more := len(names) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
