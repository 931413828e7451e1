package pools

import (
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Record counts a call in a destination's breaker and retry budget that was made without a permit, for example by a handler that
// learned only on the way which destination it would call. It counts while the breaker is closed; an open or half-open one counts only its probes.
func (r *Destinations) Record(name string, now time.Time, o breaker.Outcome) {
	if name == "" {
		return
	}
	at := stamp.Of(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	d.touch(at)
	d.balance.Record(&d.s.budget, at, budget.TryFirst, o)
	d.notify(&s.guard, now, d.circuit.Count(&d.s.breaker, at, o))
}
