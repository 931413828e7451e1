package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
	var errs []error
	for _, k := range w.calledByDefault(except) {
		if fault := w.unreachable(k, cfg.Default); fault != "" {
			errs = append(errs, fmt.Errorf("breaker of destinations without settings of their own: %s", fault))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.ByName)) {
		faults := make(map[string]string)
		callers := w.callers(name)
		for _, k := range callers {
			if fault := w.unreachable(k, cfg.ByName[name]); fault != "" {
				faults[k.name] = fault
			}
		}
		if len(callers) > 0 && len(faults) == len(callers) { // else some kind reaches it, which may be the one that calls
			errs = append(errs, fmt.Errorf("breaker of destination %q: %s", name, faults[callers[0].name]))
		}
	}
	return errors.Join(errs...)
}

// calledByDefault returns the kinds, one version each, whose jobs may call destinations that have no settings of their own.
func (w *Worker) calledByDefault(except []string) []*kind {
	var list []*kind
	for _, k := range w.kinds.all {
		_, own := w.cfg.Destinations.ByName[k.config.Destination]
		if own || slices.Contains(except, k.name) || slices.ContainsFunc(list, func(other *kind) bool { return other.name == k.name }) {
			continue
		}
		list = append(list, k)
	}
	return list
}

// callers returns the kinds that are known to call a destination or, if none is, all.
func (w *Worker) callers(name string) []*kind {
	var list []*kind
	for _, k := range w.kinds.all {
		if pools.NormalizeDestination(k.config.Destination) == pools.NormalizeDestination(name) {
			list = append(list, k)
		}
	}
	if list == nil {
		return w.kinds.all
	}
	return list
}

// unreachable says why a breaker's minimum is never met by calls of a kind that all hang; empty if it can be, or follows from the rest.
func (w *Worker) unreachable(k *kind, d pools.DestinationConfig) string {
	set := d.Breaker.MinimumCalls
	if set == 0 {
		set = w.cfg.Destinations.Default.Breaker.MinimumCalls
	}
	if set == 0 {
		return ""
	}
	places := w.places(k)
	concurrency := d.Concurrency
	if concurrency == nil {
		concurrency = w.cfg.Destinations.Default.Concurrency
	}
	if concurrency != nil && *concurrency > 0 {
		places = min(places, *concurrency)
	}
	rules := d.Breaker.Over(w.cfg.Destinations.Default.Breaker).WithDefaults()
	reach := rules.Reach(places, k.config.Timeout)
	if set <= reach {
		return ""
	}
	return fmt.Sprintf("min_calls %d is never reached while jobs of kind %q hang: with %d at once and a timeout of %s at most %d calls end within the window of %s: leave min_calls out, lower it to %d, or widen the window",
		set, k.name, places, k.config.Timeout, reach, rules.Window, reach)
}
