package worker_test

import (
	"context"
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// rig is one embedded queue with everything on it.
type rig struct {
	ctx    context.Context
	broker *embedded.Broker
	claims idempotency.Store
	dead   dlq.Store
}

func (r *rig) client(t testing.TB) *worker.Client {
	t.Helper()
	client, err := worker.NewClient(worker.ClientConfig{Broker: r.broker})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
