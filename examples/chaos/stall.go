package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/schedule"
)

// printStall is the experiment on what a breaker saves: between 1 s and 3 s the endpoint takes requests and answers too late. One attempt each.
func printStall(ctx context.Context, out io.Writer) ([]*observed, error) {
	backoff, err := schedule.Constant(100*time.Millisecond, schedule.JitterNone)
	if err != nil {
		return nil, err
	}
	base := setup{
		due: every(40, 4*time.Second), maxWait: 3 * time.Second, attempts: 1, backoff: backoff, timeout: 300 * time.Millisecond,
		behave: func(at time.Duration) reply {
			if at >= time.Second && at < 3*time.Second {
				return reply{status: http.StatusNoContent, after: time.Second}
			}
			return ok
		},
	}
	open, guarded := base, base
	open.destination = pools.DestinationConfig{Breaker: never, Budget: noBudget}
	guarded.destination = pools.DestinationConfig{Breaker: alert()}
	list, err := observeAll(ctx, []setup{open, guarded})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "| | delivered at once | delivered in the end | put back by the breaker | breaker opened | time in failed calls |\n|---|---|---|---|---|---|\n")
	for i, o := range list {
		fmt.Fprintf(out, "| %s | %s | %s | %d | %d | %s |\n", [...]string{"no breaker", "breaker"}[i], percent(o.atOnce(), o.events()),
			percent(o.delivered(end), o.events()), o.refused, o.opened(), seconds(o.wasted()))
	}
	return list, nil
}
