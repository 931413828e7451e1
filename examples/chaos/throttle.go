package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// printThrottle is the experiment on 429: 60 events per second for an endpoint that takes 40 in each and answers 429 with Retry-After to the rest.
// One attempt each; what counts is what arrived while the load went on. The breaker opens at 30 % failures.
func printThrottle(ctx context.Context, out io.Writer) ([]*observed, error) {
	const length = 10 * time.Second
	backoff, err := schedule.Constant(500*time.Millisecond, schedule.JitterNone)
	if err != nil {
		return nil, err
	}
	limits := alert()
	limits.FailurePercent, limits.MinimumCalls, limits.Window, limits.OpenFor = new(30), 20, 2*time.Second, 1500*time.Millisecond
	base := func() setup {
		return setup{
			due: every(60, length), maxWait: 0, attempts: 1, backoff: backoff, timeout: time.Second, behave: quota(40),
			destination: pools.DestinationConfig{Breaker: limits, Budget: noBudget},
		}
	}
	counted, ignored, throttled := base(), base(), base()
	counted.middleware = changeErrors(func(e *worker.Error) { e.Throttle, e.After, e.Breaker = 0, 0, breaker.OutcomeFailure })
	ignored.middleware = changeErrors(func(e *worker.Error) { e.Throttle, e.After = 0, 0 })
	list, err := observeAll(ctx, []setup{counted, ignored, throttled})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "| 429 | delivered during the load | put back by the breaker | breaker opened | 429s seen |\n|---|---|---|---|---|\n")
	for i, o := range list {
		name := [...]string{"counts as a failure", "is ignored by the breaker", "is ignored, and throttles the endpoint (the default)"}[i]
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d |\n", name, percent(o.delivered(length), o.events()), o.refused, o.opened(),
			o.endpoint.statuses[http.StatusTooManyRequests])
	}
	return list, nil
}

// quota takes so many requests in each second and answers 429 to the others.
func quota(perSecond int) func(time.Duration) reply {
	second, used := -1, 0
	return func(at time.Duration) reply { // called under the endpoint's lock
		if now := int(at / time.Second); now != second {
			second, used = now, 0
		}
		if used++; used > perSecond {
			return reply{status: http.StatusTooManyRequests, retry: 1}
		}
		return ok
	}
}
