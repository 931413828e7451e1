package runtime

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/pools"
)

// share passes what other workers report of shared destinations to the worker. Without shared destinations it reads nothing. While the status store
// does not answer, the last reports hold until they are too old; then the worker is on its own.
func (r *reporter) share(ctx context.Context, uses []string) {
	d := r.worker.Destinations()
	if !d.Shares() {
		return
	}
	within, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	reports, err := r.statuses.Reports(within)
	now := time.Now()
	switch {
	case err == nil || len(reports) > 0: // a report of another version is left out
		r.readAt = now
		d.Share(now, peersOf(fleet.Peers(reports, r.self.ID, uses), now))
	case now.Sub(r.readAt) > fleet.Live:
		d.Share(now, nil)
	}
}

// sharedInUse names the destinations that this worker's report lists as shared.
func (r *reporter) sharedInUse(now time.Time) []string {
	d := r.worker.Destinations()
	if !d.Shares() {
		return nil
	}
	return d.SharedInUse(now, fleet.Live)
}

func peersOf(told map[string]fleet.Peer, now time.Time) map[string]pools.Peer {
	peers := make(map[string]pools.Peer, len(told))
	for name, p := range told {
		peer := pools.Peer{Users: p.Users}
		if p.OpenFor > 0 {
			peer.OpenUntil = now.Add(p.OpenFor)
		}
		peers[name] = peer
	}
	return peers
}
