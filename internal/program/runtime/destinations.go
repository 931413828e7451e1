package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/limiter"
)

// destinationsOf translates breakers and limits. The configuration has completed every override from its default.
func destinationsOf(cfg *config.Config) pools.DestinationsConfig {
	d := pools.DestinationsConfig{
		SlowLane: slowLaneOf(cfg),
		Default:  destinationOf(cfg.Destinations.Default),
		ByName:   make(map[string]pools.DestinationConfig, len(cfg.Destinations.Overrides)+len(cfg.Webhook.Endpoints)),
	}
	for name, o := range cfg.Destinations.Overrides {
		d.ByName[name] = destinationOf(o)
	}
	return d
}

// addEndpoints adds the breakers and limits of the file's webhook endpoints.
func addEndpoints(destinations map[string]pools.DestinationConfig, cfg config.Webhook) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(cfg.Endpoints)) {
		if _, taken := destinations[id]; taken {
			errs = append(errs, fmt.Errorf("destinations.overrides.%s: is a webhook endpoint: set its limits in webhook.endpoints.%s and webhook.breaker", id, id))
		}
		c := cfg.Endpoints[id]
		destinations[id] = pools.DestinationConfig{
			Breaker:     breakerOf(cfg.Breaker),
			Concurrency: new(c.Concurrency),
			Lane:        new(true),
			Rate:        limiter.Config{Rate: new(c.Rate), Burst: c.Burst},
		}
	}
	return errors.Join(errs...)
}

// slowLaneOf gives slow destinations their share of the slots.
func slowLaneOf(cfg *config.Config) pools.SlowLaneConfig {
	lane := cfg.Destinations.SlowLane
	return pools.SlowLaneConfig{Slots: (cfg.Concurrency*lane.SharePercent + 99) / 100, Over: lane.Over}
}

// destinationOf translates one destination.
func destinationOf(d config.Destination) pools.DestinationConfig {
	return pools.DestinationConfig{
		Breaker:     breakerOf(d.Breaker),
		Concurrency: new(d.Concurrency),
		Adaptive:    adaptive.LimitConfig{Min: new(d.AdaptiveMin)},
		Timeout:     adaptive.TimeoutConfig{Floor: new(d.TimeoutFloor)},
		Lane:        new(d.InSlowLane),
		Shared:      new(d.Shared),
		Rate:        limiter.Config{Rate: new(d.Rate), Burst: d.Burst},
		Budget: budget.Config{
			Form:  budget.Form(d.Budget.Form),
			Ratio: finagleRatio(d.Budget),
			Floor: new(d.Budget.Floor),
		},
	}
}

// finagleRatio is the share of retries for the one form that the configuration's percent belongs to.
func finagleRatio(b config.Budget) float64 {
	if budget.Form(b.Form) != budget.FormFinagle {
		return 0
	}
	return float64(b.Percent) / 100
}

func breakerOf(b config.Breaker) breaker.Config {
	return breaker.Config{
		FailurePercent: new(b.FailurePercent),
		SlowPercent:    new(b.SlowPercent),
		SlowAfter:      new(b.SlowAfter),
		Window:         b.Window,
		MinimumCalls:   b.MinCalls,
		HungAfter:      new(b.HungAfter),
		OpenFor:        b.Open,
		OpenGrowth:     b.OpenGrowth,
		OpenMax:        max(b.OpenMax, b.Open),
		Probes:         b.Probes,
		ProbesToClose:  b.ProbeSuccesses,
		Ramp:           new(b.Ramp),
	}
}
