package condition

import (
	"iter"

	"github.com/caisson-go/caisson/dlq"
)

// Columns returns the columns that must equal a value for f to match, always in the same order.
func Columns(f dlq.Filter) iter.Seq2[string, string] {
	return func(yield func(column, value string) bool) {
		for _, c := range []struct{ column, value string }{
			{"queue", f.Queue},
			{"kind", f.Kind},
			{"destination", f.Destination},
			{"cause", string(f.Cause)},
			{"fingerprint", f.Fingerprint},
		} {
			if c.value != "" && !yield(c.column, c.value) {
				return
			}
		}
	}
}
