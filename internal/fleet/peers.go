package fleet

import "time"

// Peer is what the rest of the fleet says of one destination that workers share.
type Peer struct {
	// OpenFor is how long the breaker of another worker will refuse yet, counted from when the reports were read. Zero means that none does.
	OpenFor time.Duration
	// Users is how many workers use the destination, the one that asks among them. One that uses so many that this one may be among those that
	// it left out counts.
	Users int
}

// Peers returns what reports say to the worker with the id self, which uses the destinations of that names: of these, and of those that are open
// elsewhere. Its own report says nothing. A breaker that an operator forced open is that operator's word to one worker. One that is half-open,
// or whose time is over, holds nobody back: there may be no job there to try it with.
func Peers(reports []Report, self string, uses []string) map[string]Peer {
	peers := make(map[string]Peer, len(uses))
	for _, name := range uses {
		peers[name] = Peer{Users: 1}
	}
	for _, r := range reports {
		if r.ID == self {
			continue
		}
		listed := make(map[string]bool, len(r.Shared))
		for _, name := range r.Shared {
			listed[name] = true
		}
		for _, name := range uses {
			if p := peers[name]; listed[name] || r.MoreShared > 0 {
				p.Users++
				peers[name] = p
			}
		}
		for _, d := range r.Destinations {
			left := d.Next.Sub(r.Now)
			if d.State != "open" || d.Override != "" || d.Next.IsZero() || left <= 0 {
				continue
			}
			p := peers[d.Name]
			p.OpenFor, p.Users = max(p.OpenFor, left), max(p.Users, 1)
			peers[d.Name] = p
		}
	}
	return peers
}
