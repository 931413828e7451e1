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
	"github.com/caisson-go/caisson/worker"
)

// compression is how much faster than by the defaults everything goes in the first part.
const compression = 60

// The first part: one endpoint, 0.1 events per second by the defaults, sick for 20 minutes and then well for 10.
const (
	sickRate  = 0.1 * compression
	sickFor   = 20 * time.Minute / compression
	wellFor   = 10 * time.Minute / compression
	callLimit = 15 * time.Second / compression // how long an answer may take
)

// sickness is one way of being sick.
type sickness struct {
	name   string
	behave func(at time.Duration) reply
	// refuses says that nobody listens until the repair.
	refuses bool
}

func sicknesses() []sickness {
	status := func(r reply) func(time.Duration) reply { return func(time.Duration) reply { return r } }
	return []sickness{
		{name: "hang", behave: status(reply{hang: true})},
		{name: "refuse", behave: status(ok), refuses: true},
		{name: "500", behave: status(reply{status: http.StatusInternalServerError})},
		// Retry-After counts in whole seconds: one is a minute here.
		{name: "429, Retry-After", behave: status(reply{status: http.StatusTooManyRequests, retry: 1})},
		{name: "flap", behave: func(at time.Duration) reply {
			if int(at/flapEvery)%2 == 0 {
				return reply{status: http.StatusInternalServerError}
			}
			return ok
		}},
	}
}

// flapEvery is 20 s by the defaults.
const flapEvery = 20 * time.Second / compression

// quick divides the delays of the default schedule.
func quick() (schedule.Backoff, error) {
	var delays []time.Duration
	for n := 1; n <= schedule.WebhookBackoff.Len(); n++ {
		delays = append(delays, schedule.WebhookBackoff.Nominal(n)/compression)
	}
	spread, err := schedule.JitterFactor(0.8, 1.2)
	if err != nil {
		return schedule.Backoff{}, err
	}
	return schedule.Fixed(delays, spread)
}

// setup of a sickness with the default breaker, or without any mechanism.
func (s sickness) setup(bare bool) (setup, error) {
	backoff, err := quick()
	if err != nil {
		return setup{}, err
	}
	breaker := breaker.Webhook()
	breaker.Window /= compression
	breaker.OpenFor /= compression
	breaker.ProbeLease = 2 * time.Second
	out := setup{
		due: every(sickRate, sickFor+wellFor), maxWait: 5 * time.Second, attempts: schedule.WebhookBackoff.Len() + 1, backoff: backoff, timeout: callLimit,
		destination: pools.DestinationConfig{Breaker: breaker, Concurrency: new(3), DeferCap: 15 * time.Minute / compression},
		hold:        worker.HoldConfig{After: new(15 * time.Minute / compression), Interval: 100 * time.Millisecond},
		behave: func(at time.Duration) reply {
			if at < sickFor {
				return s.behave(at)
			}
			return ok
		},
	}
	if s.refuses {
		out.repair = sickFor
	}
	if bare {
		out = without(out)
	}
	return out, nil
}

// without takes breaker, throttling and budget away.
func without(s setup) setup {
	s.destination.Breaker.FailurePercent, s.destination.Breaker.SlowPercent = new(0), new(0)
	s.destination.Budget.Form = budget.FormNone
	s.middleware = changeErrors(func(e *worker.Error) { e.Throttle, e.After = 0, 0 })
	return s
}

// printSick runs the first part, all sicknesses side by side, and prints its table.
func printSick(ctx context.Context, out io.Writer) ([]sickResult, error) {
	list := sicknesses()
	results := make([]sickResult, len(list))
	var tasks []func() error
	for i, s := range list {
		for _, bare := range []bool{false, true} {
			tasks = append(tasks, func() error {
				setup, err := s.setup(bare)
				if err != nil {
					return err
				}
				o, err := run(ctx, setup)
				if bare {
					results[i].without = o
				} else {
					results[i].sickness, results[i].with = s, o
				}
				return err
			})
		}
	}
	if err := together(tasks); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "| class | events while sick | requests while sick | without breaker, throttling and budget | time to open | first 2xx after the repair | breaker closed after the repair | backlog delivered after it |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		r.print(out)
	}
	return results, nil
}

// sickResult is one sickness with the mechanisms and without.
type sickResult struct {
	sickness      sickness
	with, without *observed
}

func (r sickResult) print(out io.Writer) {
	opened, closed := "never", "was never open"
	if at, ok := r.with.firstOpen(); ok {
		opened, closed = seconds(at), "never"
		if at, ok := r.with.closedAfter(sickFor); ok {
			closed = seconds(at - sickFor)
		}
	}
	first := "never"
	if at, ok := r.with.acceptedAfter(sickFor); ok {
		first = seconds(at - sickFor)
	}
	backlog := "not"
	if at, ok := r.with.caughtUp(sickFor); ok {
		backlog = seconds(at - sickFor)
	}
	fmt.Fprintf(out, "| %s | %d | %d | %d | %s | %s | %s | %s |\n", r.sickness.name, int(sickRate*sickFor.Seconds()),
		r.with.between(0, sickFor), r.without.between(0, sickFor), opened, first, closed, backlog)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
