package pools_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
)

func ExampleDestinations() {
	destinations, err := pools.NewDestinations(pools.DestinationsConfig{
		Default: pools.DestinationConfig{Breaker: breaker.Webhook(), Concurrency: new(1)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	permit, _ := destinations.Admit(now, pools.Request{Destination: "https://hooks.example/order?id=1"})
	_, verdict := destinations.Admit(now, pools.Request{Destination: "https://hooks.example/order?id=2"})
	fmt.Println(verdict.Reason)
	permit.Done(now, breaker.OutcomeSuccess)

	destinations.Throttle("hooks.example", now, now.Add(2*time.Minute)) // it answered 429 with Retry-After
	verdict = destinations.Peek(now, pools.Request{Destination: "hooks.example"})
	fmt.Println(verdict.Reason, verdict.Wait)
	// Output:
	// concurrency_full
	// throttled 2m0s
}

func ExampleCall() {
	errUnavailable := errors.New("503")
	policy, err := pools.NewPolicy(pools.CallConfig[string]{
		Name:      "prices",
		Timeout:   time.Second,
		Retryable: func(err error) bool { return errors.Is(err, errUnavailable) },
		Backoff:   func(int) time.Duration { return time.Millisecond },
		Fallback:  func(context.Context, error) (string, error) { return "yesterday's price", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	price, err := pools.Call(context.Background(), policy, func(context.Context) (string, error) {
		attempts++
		return "", errUnavailable
	})
	fmt.Println(price, err, attempts, policy.Snapshot().FellBack)
	// Output: yesterday's price <nil> 3 1
}
