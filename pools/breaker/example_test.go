package breaker_test

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
)

func Example() {
	b, err := breaker.New(breaker.Config{MinimumCalls: 3, OpenJitter: new(0.0)})
	if err != nil {
		fmt.Println(err)
		return
	}
	b.OnTransition(func(t breaker.Transition) { fmt.Printf("%v -> %v: %s\n", t.From, t.To, t.Reason) })
	now := time.Now()
	for range 3 {
		permit, _ := b.Admit(now)
		permit.Done(now, breaker.OutcomeFailure)
	}
	_, wait := b.Admit(now)
	fmt.Println("ask again in", wait)
	// Output:
	// closed -> open: failure_rate
	// ask again in 5s
}
