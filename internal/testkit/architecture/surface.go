package architecture

import (
	"fmt"
	"maps"
	"slices"
)

// public holds the packages that other modules may import, and how many lines go doc -short may print of each. Whoever adds a name lowers
// another or says in review why it is worth one more.
var public = map[string]int{
	"app":                        8,
	"dlq":                        25,
	"dlq/audit":                  8,
	"dlq/brokerdlq":              12,
	"dlq/jsonmatch":              7,
	"dlq/postgres":               4,
	"dlq/replay":                 21,
	"dlq/sqlite":                 3,
	"idempotency":                26,
	"idempotency/postgres":       4,
	"idempotency/sqlite":         3,
	"idempotency/storetest":      2,
	"migrations":                 12,
	"pools":                      33,
	"pools/adaptive":             12,
	"pools/breaker":              24,
	"pools/budget":               10,
	"pools/limiter":              5,
	"queue":                      30,
	"queue/embedded":             3,
	"queue/inspect":              15,
	"queue/outbox":               15,
	"queue/queuetest":            12,
	"queue/rabbitmq":             4,
	"queue/sqs":                  4,
	"schedule":                   16,
	"webhook":                    39,
	"webhook/api":                3,
	"webhook/endpoints":          24,
	"webhook/endpoints/postgres": 3,
	"webhook/endpoints/sqlite":   3,
	"webhook/journal":            12,
	"webhook/journal/postgres":   3,
	"webhook/journal/sqlite":     3,
	"webhook/ordering":           6,
	"webhook/signature":          10,
	"worker":                     46,
	"worker/jobtest":             7,
	"worker/prom":                4,
}

// MostNames bounds every public package; core are the packages that people meet first, and MostCore bounds their sum.
const (
	MostNames = 60
	MostCore  = 190
)

var core = []string{"worker", "pools", "dlq", "webhook", "queue"}

// Oversized returns what is wrong with the surface, given as lines of go doc -short by package.
func Oversized(limits, lines map[string]int) []string {
	var found []string
	sum := 0
	for _, pkg := range slices.Sorted(maps.Keys(lines)) {
		n := lines[pkg]
		limit, ok := limits[pkg]
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("%s is public and not in architecture.public: put it below internal, or give it a row", pkg))
		case n > limit:
			found = append(found, fmt.Sprintf("%s: go doc -short prints %d lines, at most %d may be", pkg, n, limit))
		}
		if limit > MostNames {
			found = append(found, fmt.Sprintf("%s: its limit of %d is above %d", pkg, limit, MostNames))
		}
		if slices.Contains(core, pkg) {
			sum += n
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(limits)) {
		if _, ok := lines[pkg]; !ok {
			found = append(found, fmt.Sprintf("%s has a row in architecture.public and does not exist", pkg))
		}
	}
	if sum > MostCore {
		found = append(found, fmt.Sprintf("%v together: go doc -short prints %d lines, at most %d may be", core, sum, MostCore))
	}
	return found
}
