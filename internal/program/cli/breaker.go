package cli

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/internal/fleet"
)

// Breaker says how the live workers see a destination; "" if there are none.
func Breaker(v fleet.View) string {
	switch {
	case v.Workers == 0:
		return ""
	case v.Worst == nil && v.Unknown > 0:
		return fmt.Sprintf("not known at %d of %s, whose reports are full", v.Unknown, Count(v.Workers, "worker"))
	case v.Worst == nil:
		return "breaker closed at " + Count(v.Workers, "worker")
	}
	return fmt.Sprintf("%s, about %s put back for it", refusal(v), Count(v.Waiting, "job"))
}

// refusal is what the worst of the workers reports.
func refusal(v fleet.View) string {
	at := fmt.Sprintf("at %d of %s", v.Refusing, Count(v.Workers, "worker"))
	next := ""
	if !v.Next.IsZero() {
		next = Time(v.Next)
	}
	switch d := v.Worst; {
	case d.Override == "forced_open": // whatever the breaker beside it, and nothing is tried
		return "breaker forced open " + at
	case d.Reason == "throttled" && d.State == "closed" && next != "":
		return "throttled (Retry-After) until " + next + ", " + at
	case d.Reason == "throttled" && d.State == "closed":
		return "throttled (Retry-After) " + at
	}
	text := fmt.Sprintf("breaker %s, refused %s", strings.ReplaceAll(v.Worst.State, "_", "-"), at)
	if v.Worst.Override != "" {
		text += ", " + strings.ReplaceAll(v.Worst.Override, "_", " ")
	}
	if !v.Since.IsZero() {
		text += ", not closed since " + Time(v.Since)
	}
	if next != "" {
		text += ", next try at " + next
	}
	return text
}
