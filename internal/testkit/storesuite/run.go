package storesuite

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Run runs the cases with the given names, which are in the order of their groups. For each group it calls open once, and for each case
// of that group what open returned, with the case's index. With parallel the groups run at the same time.
func Run(t *testing.T, names []string, parallel bool, open func(t *testing.T) (run func(t *testing.T, i int))) {
	t.Helper()
	seen := map[string]bool{}
	for first := 0; first < len(names); {
		group, _, ok := strings.Cut(names[first], "/")
		if !ok || seen[group] {
			t.Fatalf("case %q: name it Group/what holds, beside the others of its group", names[first])
		}
		seen[group] = true
		end := first
		for end < len(names) && strings.HasPrefix(names[end], group+"/") {
			end++
		}
		t.Run(group, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			run := open(t)
			for i := first; i < end; i++ {
				t.Run(strings.TrimPrefix(names[i], group+"/"), func(t *testing.T) { run(t, i) })
			}
		})
		first = end
	}
}

var named atomic.Int64

// Name returns a name that no other case of any process uses. Later names are after earlier ones.
func Name(prefix string) string {
	return fmt.Sprintf("%s-%d-%06d", prefix, time.Now().UnixNano(), named.Add(1))
}
