package worker_test

import (
	"errors"
	"testing"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// One sentinel per meaning: what a store or broker answers is what a handler's context says.
func TestSentinelsAreThePorts(t *testing.T) {
	t.Parallel()
	if !errors.Is(worker.ErrLeaseLost, queue.ErrLeaseLost) || !errors.Is(queue.ErrLeaseLost, worker.ErrLeaseLost) {
		t.Error("worker and queue have two errors for a lost lease")
	}
	if !errors.Is(worker.ErrClaimLost, idempotency.ErrClaimLost) || !errors.Is(idempotency.ErrClaimLost, worker.ErrClaimLost) {
		t.Error("worker and idempotency have two errors for a lost claim")
	}
}
