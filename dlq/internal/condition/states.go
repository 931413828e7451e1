package condition

import (
	"slices"
	"strings"

	"github.com/caisson-go/caisson/dlq"
)

// States selects the rows d in the states of f, or in those of them that are in only. The states are literals: the planner finds the partial
// indexes by them.
func States(f dlq.Filter, only []dlq.State) string {
	var literals []string
	for _, s := range f.StatesOrDead() {
		if len(only) == 0 || slices.Contains(only, s) {
			literals = append(literals, "'"+string(s)+"'")
		}
	}
	switch len(literals) {
	case 0:
		return "false"
	case 1:
		return "d.state = " + literals[0]
	}
	return "d.state IN (" + strings.Join(literals, ", ") + ")"
}
