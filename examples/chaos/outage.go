package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/schedule"
)

// fails answers 500 between two times.
func fails(from, to time.Duration) func(time.Duration) reply {
	return func(at time.Duration) reply {
		if at >= from && at < to {
			return reply{status: http.StatusInternalServerError, after: 15 * time.Millisecond}
		}
		return ok
	}
}

// never is a breaker that does not open.
var never = breaker.Config{FailurePercent: new(0), SlowPercent: new(0)}

// noBudget lets every retry through.
var noBudget = budget.Config{Form: budget.FormNone}

// alert is a breaker with short times: 50 % failures within a second, open for 0.3 s, 2 probes.
func alert() breaker.Config {
	return breaker.Config{
		FailurePercent: new(50), Window: time.Second, MinimumCalls: 10, OpenFor: 300 * time.Millisecond, OpenJitter: new(0.0), Probes: 2, ProbesToClose: 2,
	}
}

// printOutage is the experiment on correlated failures: every call fails between 1.0 s and 2.5 s, and attempts are capped at 1, 2, 3 and 5.
func printOutage(ctx context.Context, out io.Writer) ([]*observed, error) {
	backoff, err := schedule.Exponential(50*time.Millisecond, 2, time.Second, schedule.JitterFull)
	if err != nil {
		return nil, err
	}
	base := setup{due: every(50, 4*time.Second), maxWait: 3 * time.Second, behave: fails(time.Second, 2500*time.Millisecond), backoff: backoff, timeout: time.Second}
	var setups []setup
	for _, attempts := range []int{1, 2, 3, 5} {
		s := base
		s.attempts, s.destination = attempts, pools.DestinationConfig{Breaker: never, Budget: noBudget}
		setups = append(setups, s)
	}
	defended := base
	defended.attempts, defended.destination = 5, pools.DestinationConfig{Breaker: alert()}
	list, err := observeAll(ctx, append(setups, defended))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "| attempts | delivered | attempts made | amplification | time in failed calls |\n|---|---|---|---|---|\n")
	for i, o := range list {
		name := fmt.Sprintf("at most %d", o.setup.attempts)
		if i == len(setups) {
			name += ", with breaker and budget"
		}
		fmt.Fprintf(out, "| %s | %s | %d | %.2fx | %s |\n", name, percent(o.delivered(end), o.events()), o.attempts(),
			float64(o.attempts())/float64(o.events()), seconds(o.wasted()))
	}
	return list, nil
}

func percent(n, of int) string { return fmt.Sprintf("%d %%", (200*n+of)/(2*of)) }
