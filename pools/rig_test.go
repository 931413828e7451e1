package pools

import "testing"

// registry returns a registry whose jitter is always in the middle.
func registry(t testing.TB, cfg DestinationsConfig) *Destinations {
	t.Helper()
	if cfg.Random == nil {
		cfg.Random = half
	}
	r, err := NewDestinations(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
