package dlqcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/pools"
)

// fleetBreakers reads from the status store which destinations workers refuse.
type fleetBreakers struct{ statuses fleet.StatusStore }

// errSilent says what to do where no worker has reported.
var errSilent = errors.New("no running worker reports its breakers")

// Open implements [replay.Breakers]. A destination is open as long as any worker's breaker for it is not closed.
func (b fleetBreakers) Open(ctx context.Context) (func(destination string) bool, error) {
	reports, err := b.statuses.Reports(ctx)
	switch {
	case len(reports) > 0: // what others could not be read of is no reason to hold everything
	case err != nil:
		return nil, fmt.Errorf("read what workers report of their breakers: %w", err)
	default:
		return nil, fmt.Errorf("%w: none is running, or none reached the store in the last %s", errSilent, fleet.Live)
	}
	open := map[string]bool{}
	for _, r := range reports {
		for _, d := range r.Destinations {
			if refuses(d) {
				open[d.Name] = true
			}
		}
	}
	return func(destination string) bool { return open[pools.NormalizeDestination(destination)] }, nil
}

// refuses reports whether a breaker is open or still probing.
func refuses(d fleet.Destination) bool {
	switch d.Override {
	case "forced_open":
		return true
	case "forced_closed":
		return false
	}
	return d.State != "closed"
}

// breakers returns those that workers report.
func (s *session) breakers() (replay.Breakers, error) {
	statuses := s.Statuses
	if statuses == nil {
		return nil, cli.Refuse("--wait-breaker needs a store that workers share, to which they report their breakers; there is none here")
	}
	return fleetBreakers{statuses}, nil
}
