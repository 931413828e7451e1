package webhook

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

// Apply makes one worker's destinations follow an endpoint that is new, was changed or, where only its id is known, was deleted. Call it for every
// change, one at a time:
//
//   - The endpoint's breaker and limits become own, usually those of [DestinationConfig]; those of a deleted one become the default.
//   - While it is paused or disabled it is forced open, so that the worker holds its jobs. Once it is active again its breaker starts anew, and the
//     held jobs come back at the ramp. While d is full, and has no place of its own for it, the handler holds its jobs instead, one by one.
//   - One that is disabled as [ReasonGone] lets its jobs pass, without waiting for a rate: the handler gives them up without a call.
func Apply(d *pools.Destinations, now time.Time, e Endpoint, own pools.DestinationConfig, deleted bool) error {
	e = e.withDefaults()
	gone := e.State == StateDisabled && e.Reason == ReasonGone
	var cfg *pools.DestinationConfig
	if !deleted {
		if gone {
			own.Rate = limiter.Config{Rate: new(0.0)}
		}
		cfg = &own
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
