package endpoints

import "time"

// suspicion is the doubt that what fails is not the endpoints but us: our network, resolver, clock or root certificates. It rises when most of the
// fleet fails at once, and is the reason to disable nobody meanwhile. It is a pure function of what it is told.
type suspicion struct {
	// least is how many endpoints must have been called to tell.
	least int
	// calm is how long most of them must have been well for the suspicion to go.
	calm time.Duration

	raised bool
	well   time.Time // since when most of the fleet is well again; zero while it is not
}

// step tells how many endpoints were called lately, and how many of them failed at their last call. It reports whether the suspicion was raised or has gone.
// Once it is raised a smaller fleet is enough to keep it: breakers are open, so that fewer endpoints are called.
func (s *suspicion) step(now time.Time, called, failing int) (changed bool) {
	most := 2*failing > called && (s.raised || called >= s.least)
	switch {
	case most && s.raised:
		s.well = time.Time{}
		return false
	case most:
		s.raised, s.well = true, time.Time{}
		return true
	case !s.raised:
		return false
	case s.well.IsZero():
		s.well = now
		return false
	case now.Sub(s.well) < s.calm:
		return false
	}
	s.raised, s.well = false, time.Time{}
	return true
}
