package fleet

import "time"

// View is one destination as the whole fleet sees it. Each worker has a breaker of its own.
type View struct {
	// Workers is how many are live.
	Workers int `json:"workers"`
	// Refusing is how many of them would refuse a job of the destination now.
	Refusing int `json:"refusing"`
	// Unknown is how many report so many destinations that this one may be among those left out.
	Unknown int `json:"unknown,omitempty"`
	// Worst is what the worker says that is worst off; nil if the destination is closed everywhere.
	Worst *Destination `json:"worst,omitempty"`
	// Since is the earliest at which any breaker left closed; zero if none has.
	Since time.Time `json:"since,omitzero"`
	// Next is the earliest at which any worker that refuses lets a job try; zero if no worker refuses, or none says when, as while it is forced open.
	Next time.Time `json:"next,omitzero"`
	// Waiting is about how many jobs have been put back for the destination and are not due yet.
	Waiting int `json:"waiting"`
	// Now is the store's clock.
	Now time.Time `json:"now,omitzero"`
}

// Look returns how reports see the destination of that normalised name: see pools.NormalizeDestination.
func Look(reports []Report, destination string) View {
	var v View
	for _, r := range reports {
		v.Workers++
		v.Now = r.Now
		found := false
		for _, d := range r.Destinations {
			if d.Name == destination {
				v.add(d)
				found = true
			}
		}
		if !found && r.More > 0 {
			v.Unknown++
		}
	}
	return v
}

func (v *View) add(d Destination) {
	if d.Override == "forced_open" {
		d.Next = time.Time{} // the breaker beside it has one, at which nothing is tried
	}
	if d.Reason != "" {
		v.Refusing++
		v.Next = earlier(v.Next, d.Next)
	}
	v.Since = earlier(v.Since, d.Since)
	v.Waiting += d.Waiting
	if v.Worst == nil || d.badness() > v.Worst.badness() {
		v.Worst = &d
	}
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
