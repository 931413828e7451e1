package rabbitmq

import (
	"context"
	"sync"
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

// owner deletes the queues that are made through it at the end of the test.
type owner struct {
	queue.Broker
	r *rig
}

func (o owner) CreateQueue(ctx context.Context, name string) error {
	return o.Broker.CreateQueue(ctx, o.r.owned(name))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	var wires sync.Map // each case's proxy, by its name
	queuetest.Run(t, queuetest.Harness{
		Want: pinned,
		New: func(t testing.TB) func() queue.Broker {
			r := newRig(t)
			p := newProxy(t, r.url)
			wires.Store(t.Name(), p)
			cfg := r.config()
			cfg.URLs = []string{p.url(r.url)}
			return func() queue.Broker { return owner{r.open(cfg), r} }
		},
		Cut: func(t testing.TB) {
			p, _ := wires.Load(t.Name())
			p.(*proxy).cut()
		},
		Parallel:         true,
		Durable:          true,
		Shared:           true,
		Fenced:           true,
		CountsDeliveries: true,
		StampsEnqueued:   true,
	})
}
