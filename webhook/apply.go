package webhook

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

// Apply makes one worker's destinations follow an endpoint that is new or has changed. cfg is its breaker and limits, usually of
// [Endpoint.DestinationConfig]; nil says that the endpoint, of which only the id is known, was deleted. Call it for every change, one at a time:
//
//   - The endpoint's breaker and limits become those of cfg; those of a deleted one become the default.
//   - While it is paused or disabled it is forced open, so that the worker holds its jobs. Once it is active again its breaker starts anew, and the
//     held jobs come back at the ramp. While d is full, and has no place of its own for it, the handler holds its jobs instead, one by one.
//   - One that is disabled as [ReasonGone] lets its jobs pass, without waiting for a rate: the handler gives them up without a call.
func Apply(d *pools.Destinations, now time.Time, e Endpoint, cfg *pools.DestinationConfig) error {
	e = e.WithDefaults()
	deleted, gone := cfg == nil, e.Gone()
	if gone && !deleted {
		free := *cfg
		free.Rate = limiter.Config{Rate: new(0.0)}
		cfg = &free
	}
	if err := d.Set(now, e.ID, cfg); err != nil {
		return fmt.Errorf("webhook: endpoint %q: %w", e.ID, err)
	}
	if !deleted && !gone && e.State != StateActive {
		d.Force(e.ID, now, breaker.OverrideOpen)
		return nil
	}
	known, ok := d.Lookup(e.ID, now)
	switch {
	case !ok: // nothing to clear, and nothing to remember it for
	case known.Override == breaker.OverrideOpen:
		d.Reset(e.ID, now)
		d.Force(e.ID, now, breaker.OverrideNone)
	case gone:
		d.Reset(e.ID, now)
	}
	return nil
}

// DestinationConfig is what the endpoint's breaker and limits should be: at most its concurrency and rate, open for 5 min at 80 % failures
// within 10 min and at least 5 calls, and in the slow lane while it is slow. Its concurrency adapts, and its state is shared, where it asks for
// that. Register it under the endpoint's id.
func (e Endpoint) DestinationConfig() pools.DestinationConfig {
	e = e.WithDefaults()
	c := pools.DestinationConfig{
		Breaker:     breaker.Webhook(),
		Concurrency: new(e.Concurrency),
		Lane:        new(true),
	}
	if e.Rate > 0 {
		c.Rate.Rate = new(e.Rate)
	}
	if e.Adaptive {
		c.Adaptive.Min = new(1)
	}
	if e.Shared {
		c.Shared = new(true)
	}
	return c
}
