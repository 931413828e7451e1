package webhookapi

import (
	"maps"
	"slices"
)

// Routes are those of the API, sorted.
func Routes() []string { return slices.Sorted(maps.Keys((&api{}).routes())) }
