package prom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/pools"
)

// Call returns a hook for [pools.CallConfig.Observe] that counts what happens to the calls to dependency. Watch fell_back: fallbacks hide
// outages. dependency is a name from the program's own text, never from a job.
func (o *Observer) Call(dependency string) func(pools.CallEvent) {
	dependency = o.dependencies.fold(dependency)
	var counters sync.Map // of pools.CallEvent to prometheus.Counter
	return func(e pools.CallEvent) {
		c, ok := counters.Load(e)
		if !ok {
			c, _ = counters.LoadOrStore(e, o.calls.WithLabelValues(dependency, string(e)))
		}
		c.(prometheus.Counter).Inc()
	}
}
