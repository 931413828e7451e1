package pools

import (
	"cmp"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
)

// registry returns a registry whose jitter is always in the middle, and whose breakers stay open for 30 s unless cfg says otherwise.
func registry(t testing.TB, cfg DestinationsConfig) *Destinations {
	t.Helper()
	if cfg.Random == nil {
		cfg.Random = half
	}
	b := &cfg.Default.Breaker
	b.OpenFor, b.OpenGrowth = cmp.Or(b.OpenFor, 30*time.Second), cmp.Or(b.OpenGrowth, 1)
	b.OpenMax = cmp.Or(b.OpenMax, max(b.OpenFor, 15*time.Minute))
	r, err := NewDestinations(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func half() float64 { return 0.5 } // the middle of every jitter

func times(n int, o breaker.Outcome) []breaker.Outcome {
	list := make([]breaker.Outcome, n)
	for i := range list {
		list[i] = o
	}
	return list
}
