package worker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/pools"
)

// places is how many jobs of the kind can run at once in this worker: the fewest of its slots and bulkhead.
func (w *Worker) places(k *kind) int {
	if k.pool == nil {
		return w.cfg.Concurrency
	}
	return min(w.cfg.Concurrency, k.pool.most)
}

// CheckBreakers returns an error for each breaker whose MinimumCalls was set so high that a destination which hangs never reaches it:
// within the window, at most as many calls end as there are places, for each time that the timeout fits in. Kinds that call only
// destinations with settings made elsewhere, such as webhooks, are named in except. It returns nil if there is none.
func (w *Worker) CheckBreakers(except ...string) error {
	cfg := w.cfg.Destinations
	callers := make(map[string][]*kind)
	for _, k := range w.kinds.all {
		name := pools.NormalizeDestination(k.config.Destination)
		callers[name] = append(callers[name], k)
	}
	var faults []string
	own := make(map[string]bool)
	for _, raw := range slices.Sorted(maps.Keys(cfg.ByName)) {
		name := pools.NormalizeDestination(raw)
		own[name] = true
		kinds := callers[name]
		if kinds == nil {
			kinds = w.kinds.all // nobody knows which
		}
		if list := w.unreachable(kinds, cfg.ByName[raw]); len(list) == len(kinds) { // else the kind that calls may reach it
			faults = append(faults, fmt.Sprintf("breaker of destination %q: %s", name, list[0]))
		}
	}
	others := slices.DeleteFunc(slices.Clone(w.kinds.all), func(k *kind) bool {
		return own[pools.NormalizeDestination(k.config.Destination)] || slices.Contains(except, k.name)
	})
	for _, text := range slices.Compact(w.unreachable(others, cfg.Default)) { // versions of a kind often say the same
		faults = append(faults, "breaker of destinations without settings of their own: "+text)
	}
	if faults == nil {
		return nil
	}
	return errors.New(strings.Join(faults, "\n"))
}

// unreachable says, for each of the kinds whose calls never meet a breaker's minimum while they all hang, by which numbers. A minimum that was not
// set follows from the rest, and is never out of reach.
func (w *Worker) unreachable(kinds []*kind, d pools.DestinationConfig) (faults []string) {
	def := w.cfg.Destinations.Default
	rules := d.Breaker.Over(def.Breaker)
	if rules.MinimumCalls == 0 {
		return nil
	}
	limit := cmp.Or(d.Concurrency, def.Concurrency)
	for _, k := range kinds {
		places := w.places(k)
		if limit != nil && *limit > 0 {
			places = min(places, *limit)
		}
		if reach := rules.Reach(places, k.config.Timeout); rules.MinimumCalls > reach {
			faults = append(faults, fmt.Sprintf("min_calls %d is never reached while jobs of kind %q hang: with %d at once and a timeout of %s at most %d calls end within the window of %s: leave min_calls out, lower it to %d, or widen the window",
				rules.MinimumCalls, k.name, places, k.config.Timeout, reach, rules.WithDefaults().Window, reach))
		}
	}
	return faults
}
