package pools

import (
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Record counts a call in a destination's breaker and retry budget that was made without a permit, for example by a handler that
// learned only on the way which destination it would call. It counts while the breaker is closed; an open or half-open one counts only its probes. Of the
// request, Destination and Places count.
func (r *Destinations) Record(now time.Time, req Request, o breaker.Outcome) {
	if req.Destination == "" {
		return
	}
	at := stamp.Of(now)
	s, d := r.entry(req.Destination, at)
	defer s.unlock()
	d.touch(at)
	d.places(at, req.Places)
	d.balance.Record(&d.s.budget, at, budget.TryFirst, o)
	d.notify(&s.guard, now, d.circuit.Count(&d.s.breaker, at, o))
}
