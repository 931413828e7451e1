package worker_test

import (
	"context"
	"testing"
	"testing/synctest"

	dlqpostgres "github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// stores is where a bench has its claims and dead letters. It is called in the bubble.
type stores func(t *testing.T, cfg *jobtest.Config)

func memory(*testing.T, *jobtest.Config) {}

// inPostgres has them in a schema whose clock shows the bubble's time.
func inPostgres(t *testing.T, cfg *jobtest.Config) {
	t.Helper()
	pool, schema := testserver.VirtualSchema(t)
	claims, err := postgres.New(pool, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claims.Close)
	dead, err := dlqpostgres.New(pool, dlqpostgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Claims, cfg.DeadLetters = claims, dead
}

// onStores runs a case with claims and dead letters in memory, and in PostgreSQL.
func onStores(t *testing.T, do func(t *testing.T, on stores)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { do(t, memory) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel() // it waits for the network
		do(t, inPostgres)
	})
}

// inBench is [inBench] with these stores.
func (s stores) inBench(t *testing.T, cfg jobtest.Config, kind worker.KindConfig, fn func(ctx context.Context, job *worker.Job) error, do func(t *testing.T, b *jobtest.Bench)) {
	t.Helper()
	s.inBubble(t, cfg, func(r *worker.Registry) { work(r, "job", kind, fn) }, do)
}

// inBubble runs do on a bench with the kinds of register.
func (s stores) inBubble(t *testing.T, cfg jobtest.Config, register func(*worker.Registry), do func(t *testing.T, b *jobtest.Bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := worker.NewRegistry()
		register(r)
		s(t, &cfg)
		do(t, jobtest.New(t, r, cfg))
	})
}
