package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
)

// What an endpoint asks for is what its destination gets; the slow lane it is always in.
func TestDestinationConfig(t *testing.T) {
	t.Parallel()
	plain := pools.DestinationConfig{Breaker: breaker.Webhook(), Concurrency: new(3), Lane: new(true)}
	asking := plain
	asking.Concurrency, asking.Rate.Rate, asking.Adaptive.Min, asking.Shared = new(8), new(5.0), new(1), new(true)
	for name, c := range map[string]struct {
		endpoint Endpoint
		want     pools.DestinationConfig
	}{
		"by default": {Endpoint{ID: "e"}, plain},
		"all of it":  {Endpoint{ID: "e", Concurrency: 8, Rate: 5, Adaptive: true, Shared: true}, asking},
	} {
		if diff := cmp.Diff(c.want, c.endpoint.DestinationConfig()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
