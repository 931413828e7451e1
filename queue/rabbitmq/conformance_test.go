package rabbitmq

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
)

// pinned is what the driver must declare.
var pinned = queue.Capabilities{
	Name:           "rabbitmq",
	MaxLease:       29 * time.Minute,
	MaxBody:        16 << 20,
	CountsAttempts: true,
	Depth:          queue.DepthFieldReady,
}

func TestConformance(t *testing.T) {
	var current *rig // cases run one after the other
	var wire *proxy
	queuetest.Run(t, queuetest.Harness{
		Want: pinned,
		New: func(t testing.TB) func() queue.Broker {
			r := newRig(t)
			p := newProxy(t, r.url)
			current, wire = r, p
			cfg := r.config()
			cfg.URLs = []string{p.url(r.url)}
			return func() queue.Broker { return r.open(cfg) }
		},
		Cut:              func(testing.TB) { wire.cut() },
		QueueName:        func(name string) string { return current.owned(name) },
		Durable:          true,
		Shared:           true,
		Fenced:           true,
		CountsDeliveries: true,
		StampsEnqueued:   true,
	})
}
