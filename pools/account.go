package pools

import (
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
)

// account is what one call is charged to: the permits of its breaker and its destination, and its policy's own budget. The breakers count
// the whole call, the budgets each attempt: in gRFC A6 every failed one costs a token, before it is asked whether there may be another.
type account struct {
	breaker  *breaker.Permit
	permit   *Permit
	budget   *budget.Budget // nil if there is none
	recorded bool           // the budgets know how the last attempt ended
	last     budget.Try
}

// failed records an attempt that is not to be the last in the budgets.
func (a *account) failed(now time.Time, o breaker.Outcome) {
	a.recorded = true
	a.permit.attempted(now, o)
	if a.budget != nil {
		a.budget.Record(now, a.last, o)
	}
}

// retry takes what one more try, or a hedge beside the running one, costs from both budgets, or from neither.
func (a *account) retry(now time.Time, t budget.Try, hedge bool) bool {
	if a.breaker.Retry(now) > 0 || a.budget != nil && !a.budget.Take(now, t) {
		return false
	}
	if !a.permit.again(now, t, hedge).OK() {
		if a.budget != nil {
			a.budget.Return(now, t)
		}
		return false
	}
	if a.recorded, a.last = false, t; hedge {
		a.last = budget.TryFirst
	}
	return true
}

// done ends the call.
func (a *account) done(now time.Time, o breaker.Outcome) {
	a.breaker.Done(now, o)
	a.permit.finish(now, o, !a.recorded)
	if a.budget != nil && !a.recorded {
		a.budget.Record(now, a.last, o)
	}
}
