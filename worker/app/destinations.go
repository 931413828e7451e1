package app

import (
	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/pools"
)

// destinationsOf translates breakers and limits. The configuration has completed every override from its default.
func destinationsOf(cfg *config.Config) pools.DestinationsConfig {
	d := pools.DestinationsConfig{
		Default:   destinationOf(cfg.Destinations.Default),
		Overrides: make(map[string]pools.DestinationConfig, len(cfg.Destinations.Overrides)+len(cfg.Webhook.Endpoints)),
	}
	for name, o := range cfg.Destinations.Overrides {
		d.Overrides[name] = destinationOf(o)
	}
	return d
}

// destinationOf translates one destination. A zero in the configuration means none, which is negative in pools, where zero is inherited.
func destinationOf(d config.Destination) pools.DestinationConfig {
	return pools.DestinationConfig{
		Breaker:     breakerOf(d.Breaker),
		Concurrency: orNone(d.Concurrency),
		Rate:        pools.RateConfig{Rate: orNone(d.Rate), Burst: d.Burst},
		Budget: pools.BudgetConfig{
			Form:  pools.BudgetForm(d.Budget.Form),
			Ratio: finagleRatio(d.Budget),
			Floor: orNone(d.Budget.Floor),
		},
	}
}

// finagleRatio is the share of retries for the one form that the configuration's percent belongs to.
func finagleRatio(b config.Budget) float64 {
	if pools.BudgetForm(b.Form) != pools.BudgetFinagle {
		return 0
	}
	return float64(b.Percent) / 100
}

func breakerOf(b config.Breaker) pools.BreakerConfig {
	return pools.BreakerConfig{
		FailurePercent: b.FailurePercent,
		SlowPercent:    b.SlowPercent,
		SlowAfter:      orNone(b.SlowAfter),
		Window:         b.Window,
		MinimumCalls:   b.MinCalls,
		OpenFor:        b.Open,
		OpenGrowth:     b.OpenGrowth,
		OpenMax:        max(b.OpenMax, b.Open),
		Probes:         b.Probes,
		ProbesToClose:  b.ProbeSuccesses,
		Ramp:           b.Ramp,
	}
}

// orNone returns value, or -1 for zero.
func orNone[T interface{ ~int | ~int64 | ~float64 }](value T) T {
	if value == 0 {
		return -1
	}
	return value
}
