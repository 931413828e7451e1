package pools

import (
	"cmp"
	"math"
)

// budgetRules is a BudgetConfig in whole thousandths of a retry (Finagle) or token (gRPC), or in tokens (AWS).
type budgetRules struct {
	form    BudgetForm
	width   int64 // of a slice
	reserve int64 // Finagle: what the floor allows in one window
	deposit int32 // for a success
	tokens  int32
	cost    [2]int32 // by throttled
}

const milli = 1000

func newBudgetRules(c BudgetConfig) budgetRules {
	r := budgetRules{form: c.Form, width: int64(c.Window) / spans}
	thousandths := int32(math.Round(c.Ratio * milli))
	switch c.Form {
	case BudgetFormFinagle:
		r.deposit, r.cost = thousandths, [2]int32{milli, milli}
		r.reserve = int64(math.Round(c.Floor * c.Window.Seconds() * milli))
	case BudgetFormGRPC:
		r.deposit, r.tokens, r.cost = thousandths, int32(c.Tokens)*milli, [2]int32{milli, milli}
	case BudgetFormAWS:
		r.deposit, r.tokens = int32(c.Refund), int32(c.Tokens)
		r.cost = [2]int32{int32(c.Cost), int32(c.ThrottleCost)}
	}
	return r
}

const spans = 5

// allowance is the state of a budget in 24 bytes. Its zero value is a full one.
type allowance struct {
	head  uint32       // Finagle: slot of the newest slice
	cells [spans]int32 // Finagle: deposits minus withdrawals by slice; else cells[0] is the tokens missing
}

func (a *allowance) advance(n uint32) {
	if a.cells == ([spans]int32{}) { // also before its first use, when head says nothing
		a.head = n
		return
	}
	steps := int32(n - a.head)
	if steps <= 0 {
		return
	}
	if steps >= spans {
		a.cells = [spans]int32{}
	} else {
		for i := range uint32(steps) {
			a.cells[(a.head+1+i)%spans] = 0
		}
	}
	a.head = n
}

// balance is what can be spent as of now.
func (a *allowance) balance(r *budgetRules, now int64) int64 {
	if r.form != BudgetFormFinagle {
		return int64(max(r.tokens-a.cells[0], 0))
	}
	a.advance(slot(now, r.width))
	sum := r.reserve
	for _, c := range a.cells {
		sum += int64(c)
	}
	return sum
}

func (a *allowance) allows(r *budgetRules, now int64, throttled bool) bool {
	switch r.form {
	case BudgetFormNone:
		return true
	case BudgetFormGRPC:
		return a.balance(r, now) > int64(r.tokens)/2
	}
	return a.balance(r, now) >= int64(r.cost[index(throttled)])
}

// spend takes the cost of a retry that allows said yes to. With gRPC only failures cost.
func (a *allowance) spend(r *budgetRules, throttled bool) {
	switch r.form {
	case BudgetFormFinagle:
		a.earn(-r.cost[0])
	case BudgetFormAWS:
		a.cells[0] = min(a.cells[0]+r.cost[index(throttled)], r.tokens)
	}
}

// unspend gives back what a retry cost that was not made.
func (a *allowance) unspend(r *budgetRules, now int64, throttled bool) {
	switch r.form {
	case BudgetFormFinagle:
		a.advance(slot(now, r.width))
		a.earn(r.cost[0])
	case BudgetFormAWS:
		a.cells[0] = max(a.cells[0]-r.cost[index(throttled)], 0)
	}
}

// record tells how a call ended whose last try cost spent; 0 for a first try.
func (a *allowance) record(r *budgetRules, now int64, o Outcome, spent int32) {
	success := o == OutcomeSuccess || o == OutcomeSlow
	switch {
	case r.form == BudgetFormFinagle && success:
		a.advance(slot(now, r.width))
		a.earn(r.deposit)
	case r.form == BudgetFormGRPC && o == OutcomeFailure:
		a.cells[0] = min(a.cells[0]+r.cost[0], r.tokens)
	case r.form == BudgetFormGRPC && success:
		a.cells[0] = max(a.cells[0]-r.deposit, 0)
	case r.form == BudgetFormAWS && success:
		a.cells[0] = max(a.cells[0]-cmp.Or(spent, r.deposit), 0)
	}
}

// earn adds to the newest slice; it stops at the limits of a slice.
func (a *allowance) earn(n int32) {
	c := &a.cells[a.head%spans]
	*c = int32(min(max(int64(*c)+int64(n), math.MinInt32), math.MaxInt32))
}

// left is how many transient retries would be allowed now.
func (a *allowance) left(r *budgetRules, now int64) int {
	switch r.form {
	case BudgetFormNone:
		return math.MaxInt32
	case BudgetFormGRPC:
		// Retries themselves cost nothing: what counts is how many failures it takes to stop them.
		return int((max(a.balance(r, now)-int64(r.tokens)/2, 0) + milli - 1) / milli)
	}
	return int(max(a.balance(r, now), 0) / int64(r.cost[0]))
}

// lastTry is what the budget knows of the last try of a call.
type lastTry struct{ retry, throttled bool }

// spent is what it cost; 0 for a first try.
func (l lastTry) spent(r *budgetRules) int32 {
	if !l.retry {
		return 0
	}
	return r.cost[index(l.throttled)]
}

func index(throttled bool) int {
	if throttled {
		return 1
	}
	return 0
}
