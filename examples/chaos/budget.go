package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/schedule"
)

// The experiment on retry budgets: an endpoint is down from 0.8 s to 2.8 s, and events have up to 3 attempts.
const (
	budgetFrom = 800 * time.Millisecond
	budgetTo   = 2800 * time.Millisecond
)

// printBudget shows what a budget does to the load of an outage.
func printBudget(ctx context.Context, out io.Writer) ([]*observed, error) {
	backoff, err := schedule.Exponential(100*time.Millisecond, 2, time.Second, schedule.JitterFull)
	if err != nil {
		return nil, err
	}
	budgets := []budget.Config{noBudget}
	for _, ratio := range []float64{0.05, 0.1, 0.25, 1} {
		budgets = append(budgets, budget.Config{Ratio: ratio, Floor: new(0.0), Window: time.Second})
	}
	budgets = append(budgets, budget.Config{Ratio: 0.1, Floor: new(3.0), Window: time.Second})
	var setups []setup
	for _, budget := range budgets {
		setups = append(setups, setup{
			due: every(30, 3600*time.Millisecond), maxWait: 15 * time.Second, attempts: 3, backoff: backoff, timeout: time.Second,
			behave: fails(budgetFrom, budgetTo), destination: pools.DestinationConfig{Breaker: never, Budget: budget},
		})
	}
	list, err := observeAll(ctx, setups)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "| budget | attempts during the outage | attempts in all | delivered | died | still waiting |\n|---|---|---|---|---|---|\n")
	for _, o := range list {
		delivered := o.delivered(end)
		fmt.Fprintf(out, "| %s | %d | %d | %s | %s | %s |\n", budgetName(o.setup.destination.Budget), o.between(budgetFrom, budgetTo), o.attempts(),
			percent(delivered, o.events()), percent(o.dead, o.events()), percent(o.events()-delivered-o.dead, o.events()))
	}
	return list, nil
}

func budgetName(b budget.Config) string {
	switch {
	case b.Form == budget.FormNone:
		return "none"
	case b.Floor != nil && *b.Floor > 0:
		return fmt.Sprintf("%.2f of the successes and %.0f per second (the default)", b.Ratio, *b.Floor)
	}
	return fmt.Sprintf("%.2f of the successes", b.Ratio)
}
