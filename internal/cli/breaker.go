package cli

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/fleet"
)

// Breaker says how the live workers see a destination; "" if there are none.
func Breaker(v fleet.View) string {
	switch {
	case v.Workers == 0:
		return ""
	case v.Worst == nil && v.Unknown > 0:
		return fmt.Sprintf("not known at %d of %s, which have more to tell than fits", v.Unknown, Count(v.Workers, "worker"))
	case v.Worst == nil:
		return "breaker closed at " + Count(v.Workers, "worker")
	}
	text := fmt.Sprintf("breaker %s, refused at %d of %s", strings.ReplaceAll(v.Worst.State, "_", "-"), v.Refusing, Count(v.Workers, "worker"))
	if v.Worst.Override != "" {
		text += ", " + strings.ReplaceAll(v.Worst.Override, "_", " ")
	}
	if !v.Since.IsZero() {
		text += ", not closed since " + Time(v.Since)
	}
	if !v.Next.IsZero() {
		text += ", next try at " + Time(v.Next)
	}
	return fmt.Sprintf("%s, about %s put back for it", text, Count(v.Waiting, "job"))
}
