package faulttest

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// brokers that worker processes of these tests can be told to work on.
var brokers = map[string]faultlab.Opener{
	"embedded": faultlab.Embedded,
	"rabbitmq": faultlab.Beside(openRabbitMQ),
	"sqs":      faultlab.Beside(openSQS),
	"postgres": faultlab.OnPostgres,
}

func TestMain(m *testing.M) {
	faultlab.Main(brokers)
	os.Exit(m.Run())
}

func soak() bool { return os.Getenv("SOAK") != "" }

var errBoom = errors.New("boom")

// work registers a raw kind whose handler gets the job.
func work(r *worker.Registry, name string, cfg worker.KindConfig, fn func(ctx context.Context, job *worker.Job) error) {
	worker.Handle(r, worker.Kind[[]byte]{Name: name, Config: cfg}, func(ctx context.Context, _ []byte) error {
		return fn(ctx, worker.JobFrom(ctx))
	})
}

// every returns a backoff of exactly d.
func every(t *testing.T, d time.Duration) schedule.Backoff {
	t.Helper()
	p, err := schedule.Constant(d, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counts is what was settled, and what was put back for want of a store.
type counts struct{ settled, deferred atomic.Int64 }

// Observe implements [worker.Observer].
func (c *counts) Observe(e worker.Event) {
	if s, ok := e.(*worker.Settled); ok {
		c.settled.Add(1)
		if s.Reason == worker.ReasonStoreUnavailable {
			c.deferred.Add(1)
		}
	}
}
