package endpointcmd

import (
	"iter"
	"maps"
	"slices"
)

// sorted yields the entries of m by name.
func sorted(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
