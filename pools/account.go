package pools

import "time"

// account is what one call is charged to: its destination's permit and its policy's own budget. The breaker hears of the whole call, the
// budgets of each attempt: in gRFC A6 every failed one costs a token, before it is asked whether there may be another.
type account struct {
	permit   *Permit
	budget   *Budget // nil if there is none
	recorded bool    // the budgets know how the last attempt ended
	last     lastTry
}

// failed tells the budgets of an attempt that is not to be the last.
func (a *account) failed(now time.Time, o Outcome) {
	a.recorded = true
	a.permit.attempted(now, o)
	if a.budget != nil {
		a.budget.record(now, o, a.last)
	}
}

// retry takes what one more try, or a hedge beside the running one, costs from both budgets, or from neither.
func (a *account) retry(now time.Time, throttled, hedge bool) bool {
	if a.budget != nil && !a.budget.Retry(now, throttled) {
		return false
	}
	if !a.permit.again(now, throttled, hedge).OK() {
		if a.budget != nil {
			a.budget.Return(now, throttled)
		}
		return false
	}
	a.recorded, a.last = false, lastTry{!hedge, throttled}
	return true
}

// done ends the call.
func (a *account) done(now time.Time, o Outcome) {
	a.permit.finish(now, o, !a.recorded)
	if a.budget != nil && !a.recorded {
		a.budget.record(now, o, a.last)
	}
}
