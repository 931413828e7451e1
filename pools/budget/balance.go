package budget

import (
	"cmp"
	"math"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Rules is a Config in whole thousandths of a retry (Finagle) or token (gRPC), or in tokens (AWS).
type Rules struct {
	form    Form
	width   int64 // of a slice
	reserve int64 // Finagle: what the floor allows in one window
	deposit int32 // for a success
	tokens  int32
	cost    [3]int32 // by Try: what a success after it brings back, and what it takes
}

const milli = 1000

// NewRules returns the rules of a valid config whose defaults are filled in.
func NewRules(c Config) Rules {
	r := Rules{form: c.Form, width: int64(c.Window) / spans}
	thousandths := int32(math.Round(c.Ratio * milli))
	switch c.Form {
	case FormFinagle:
		r.deposit, r.cost = thousandths, [3]int32{0, milli, milli}
		r.reserve = int64(math.Round(*c.Floor * c.Window.Seconds() * milli))
	case FormGRPC:
		r.deposit, r.tokens, r.cost = thousandths, int32(c.Tokens)*milli, [3]int32{0, milli, milli}
	case FormAWS:
		r.deposit, r.tokens = int32(c.Refund), int32(c.Tokens)
		r.cost = [3]int32{0, int32(c.Cost), int32(c.ThrottleCost)}
	}
	return r
}

const spans = 5

// Balance is the state of a budget in 24 bytes, for an owner that has a lock: most programs want [Budget]. The zero Balance is full. Times
// are nanoseconds since any fixed moment.
type Balance struct {
	head  uint32       // Finagle: slot of the newest slice
	cells [spans]int32 // Finagle: deposits minus withdrawals by slice; else cells[0] is the tokens missing
}

// Reset starts over where the rules change, unless the old ones count in the same way.
func (a *Balance) Reset(from, to *Rules, now int64) {
	if from.form != to.form || from.width != to.width {
		*a = Balance{head: stamp.Slot(now, to.width)}
	}
}

func (a *Balance) advance(n uint32) {
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
func (a *Balance) balance(r *Rules, now int64) int64 {
	if r.form != FormFinagle {
		return int64(max(r.tokens-a.cells[0], 0))
	}
	a.advance(stamp.Slot(now, r.width))
	sum := r.reserve
	for _, c := range a.cells {
		sum += int64(c)
	}
	return sum
}

// Allows reports whether there is enough left for a try.
func (a *Balance) Allows(r *Rules, now int64, t Try) bool {
	if t == TryFirst {
		return true
	}
	switch r.form {
	case FormNone:
		return true
	case FormGRPC:
		return a.balance(r, now) > int64(r.tokens)/2
	}
	return a.balance(r, now) >= int64(r.cost[t])
}

// Take takes the cost of a try that Allows said yes to. With gRPC only failures cost.
func (a *Balance) Take(r *Rules, t Try) {
	if t == TryFirst {
		return
	}
	switch r.form {
	case FormFinagle:
		a.earn(-milli)
	case FormAWS:
		a.cells[0] = min(a.cells[0]+r.cost[t], r.tokens)
	}
}

// Return gives back what a try cost that was not made.
func (a *Balance) Return(r *Rules, now int64, t Try) {
	if t == TryFirst {
		return
	}
	switch r.form {
	case FormFinagle:
		a.advance(stamp.Slot(now, r.width))
		a.earn(milli)
	case FormAWS:
		a.cells[0] = max(a.cells[0]-r.cost[t], 0)
	}
}

// Record tells how a try ended.
func (a *Balance) Record(r *Rules, now int64, t Try, o breaker.Outcome) {
	success := o == breaker.OutcomeSuccess || o == breaker.OutcomeSlow
	switch {
	case r.form == FormFinagle && success:
		a.advance(stamp.Slot(now, r.width))
		a.earn(r.deposit)
	case r.form == FormGRPC && o == breaker.OutcomeFailure:
		a.cells[0] = min(a.cells[0]+milli, r.tokens)
	case r.form == FormGRPC && success:
		a.cells[0] = max(a.cells[0]-r.deposit, 0)
	case r.form == FormAWS && success:
		a.cells[0] = max(a.cells[0]-cmp.Or(r.cost[t], r.deposit), 0)
	}
}

// earn adds to the newest slice; it stops at the limits of a slice.
func (a *Balance) earn(n int32) {
	c := &a.cells[a.head%spans]
	*c = int32(min(max(int64(*c)+int64(n), math.MinInt32), math.MaxInt32))
}

// Left is how many transient retries would be allowed now.
func (a *Balance) Left(r *Rules, now int64) int {
	switch r.form {
	case FormNone:
		return math.MaxInt32
	case FormGRPC:
		// Retries themselves cost nothing: what counts is how many failures it takes to stop them.
		return int((max(a.balance(r, now)-int64(r.tokens)/2, 0) + milli - 1) / milli)
	}
	return int(max(a.balance(r, now), 0) / int64(r.cost[TryRetry]))
}
