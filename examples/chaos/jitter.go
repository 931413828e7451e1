package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/schedule"
)

// The experiment on jitter: 40 clients send at the same time, every 200 ms, to an endpoint that fails for 400 ms.
const (
	clients  = 40
	interval = 200 * time.Millisecond
	bucket   = 50 * time.Millisecond
)

// jitterRounds is how often each jitter is tried: the peak of one is a matter of luck.
const jitterRounds = 3

// printJitter shows how many requests come in the same 50 ms, by the jitter of a delay of 400 ms.
func printJitter(ctx context.Context, out io.Writer) ([]*observed, error) {
	var list []*observed
	fmt.Fprintf(out, "| jitter | most requests in 50 ms, median of %d | requests in all |\n|---|---|---|\n", jitterRounds)
	for _, j := range []struct {
		name   string
		jitter schedule.Jitter
	}{{"none", schedule.JitterNone}, {"equal", schedule.JitterEqual}, {"full", schedule.JitterFull}} {
		s, err := jitterSetup(j.jitter)
		if err != nil {
			return nil, err
		}
		var rounds []*observed
		for range jitterRounds { // one after the other: the machine must not add a rhythm of its own
			o, err := run(ctx, s)
			if err != nil {
				return nil, err
			}
			rounds = append(rounds, o)
		}
		slices.SortFunc(rounds, func(a, b *observed) int { return a.peak(bucket) - b.peak(bucket) })
		o := rounds[jitterRounds/2]
		fmt.Fprintf(out, "| %s | %d | %d |\n", j.name, o.peak(bucket), o.attempts())
		list = append(list, o)
	}
	return list, nil
}

func jitterSetup(j schedule.Jitter) (setup, error) {
	backoff, err := schedule.Constant(2*interval, j)
	var due []time.Duration
	for at := time.Duration(0); at < 2*time.Second; at += interval {
		due = append(due, slices.Repeat([]time.Duration{at}, clients)...)
	}
	return setup{
		due: due, maxWait: 3 * time.Second, attempts: 5, backoff: backoff, timeout: time.Second, behave: fails(3*interval, 5*interval),
		destination: pools.DestinationConfig{Breaker: never, Budget: noBudget},
	}, err
}
