package faulttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/worker"
)

// Claims and dead letters are in PostgreSQL, which goes away in several ways. What the tables promise then: no keyed handler starts, what runs
// finishes and is settled later, nothing is lost or dead before its time, and work goes on by itself.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	t.Run("database", func(t *testing.T) { // all of them in one server
		t.Parallel()
		server := testserver.StartPostgres(t)
		for _, f := range databaseFaults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				awayWith(t, server, f)
			})
		}
		for _, f := range loadFaults() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.try(t, server)
			})
		}
		t.Run("claim's answer lost", func(t *testing.T) {
			t.Parallel()
			claimWhoseAnswerIsLost(t, newPlace(t, server))
		})
	})
	t.Run("server", func(t *testing.T) { // which they end one after the other
		t.Parallel()
		server := testserver.StartPostgres(t)
		t.Run(killed.name, func(t *testing.T) { awayWith(t, server, killed) })
		t.Run(restarted.name, func(t *testing.T) { restarted.try(t, server) })
		if soak() {
			f := killed.underALoad()
			t.Run(f.name, func(t *testing.T) { f.try(t, server) })
		}
	})
}

// awayWith looks at what goes on while the database is away.
func awayWith(t *testing.T, server *testserver.PostgresServer, f postgresFault) {
	t.Helper()
	p := newPlace(t, server)
	t.Run("under load", func(t *testing.T) { p.underLoad(t, f) })
	t.Run("refuses claims", func(t *testing.T) { p.refusesClaims(t, f) })
}

// underLoad has handlers running when the database goes away, and jobs coming meanwhile.
func (p *place) underLoad(t *testing.T, f postgresFault) {
	const running, late = 4, 8
	rig := p.open(t)
	var away atomic.Bool
	var began, ended atomic.Int64
	finish := make(chan struct{})
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{MaxAttempts: 3}, func(ctx context.Context, job *worker.Job) error {
		began.Add(1)
		if away.Load() {
			return worker.Cancel(fmt.Errorf("attempt %d began while the store was away", job.Attempt))
		}
		select {
		case <-finish:
		case <-ctx.Done():
			return ctx.Err()
		}
		ended.Add(1)
		return nil
	})
	// A claim that reaches the database when nobody waits for the answer any more is taken over after a lease.
	run := rig.start(worker.Config{Registry: registry, Concurrency: 2 * running, Lease: 3 * time.Second})
	ids := rig.enqueue("job", running)
	eventually.True(t, "the handlers run", func() bool { return began.Load() == running })

	f.strike(t, p)
	away.Store(true)
	ids = append(ids, rig.enqueue("job", late)...)
	eventually.True(t, "the worker says why it is not ready", func() bool {
		err := run.Ready()
		return err != nil && strings.Contains(err.Error(), "idempotency store")
	})
	close(finish)
	eventually.True(t, "the running handlers finish", func() bool { return ended.Load() == running })
	if n := rig.watch.settled.Load(); n > 2*running {
		t.Errorf("%d settlements while the store was away: leasing has not stopped", n)
	}
	if err := run.Ready(); err == nil {
		t.Error("ready without a store")
	}
	away.Store(false)
	f.mend(t, p)

	rig.completed("job", ids)
	if began.Load() != running+late {
		t.Errorf("%d runs of %d jobs", began.Load(), running+late)
	}
	rig.wantDead(0)
	eventually.True(t, "the worker is ready again", func() bool { return run.Ready() == nil })
}

// refusesClaims is E1b: keyed handlers are not called and nothing dies; kinds without keys die of their own count.
func (p *place) refusesClaims(t *testing.T, f postgresFault) {
	const most = 3
	rig := p.open(t)
	var mu sync.Mutex
	calls := make(map[string]int)
	registry := worker.NewRegistry()
	for kind, keyed := range map[string]bool{"keyed": true, "unkeyed": false} {
		cfg := worker.KindConfig{MaxAttempts: most, Keyed: &keyed, Backoff: every(t, 10*time.Millisecond)}
		work(registry, kind, cfg, func(_ context.Context, job *worker.Job) error {
			mu.Lock()
			defer mu.Unlock()
			calls[job.Kind]++
			return errBoom
		})
	}
	called := func(kind string) int {
		mu.Lock()
		defer mu.Unlock()
		return calls[kind]
	}
	f.strike(t, p)
	keyed := rig.enqueue("keyed", 3)
	unkeyed := rig.enqueue("unkeyed", 2)
	rig.start(worker.Config{Registry: registry})
	eventually.True(t, "the unkeyed jobs have spent their attempts", func() bool { return called("unkeyed") == most*len(unkeyed) })
	eventually.True(t, "the keyed jobs were put back", func() bool { return rig.watch.deferred.Load() >= int64(len(keyed)) })
	if n := called("keyed"); n != 0 {
		t.Errorf("keyed handlers were called %d times without a claim", n)
	}
	f.mend(t, p)
	rig.wantDead(len(keyed) + len(unkeyed))
	for _, id := range append(keyed, unkeyed...) {
		if e, err := rig.dead.Get(t.Context(), dlq.EntryID(id, 0)); err != nil || e.AttemptCount != most || e.Cause != dlq.CauseExhausted {
			t.Errorf("job %s: %d attempts, dead of %s, %v", id, e.AttemptCount, e.Cause, err)
		}
	}
	if called("keyed") != most*len(keyed) || called("unkeyed") != most*len(unkeyed) {
		t.Errorf("calls: %v", calls)
	}
}

// completed waits until all jobs are.
func (r *awayRig) completed(kind string, ids []string) {
	r.t.Helper()
	for _, id := range ids {
		eventually.True(r.t, "job "+id+" is completed", func() bool {
			record, err := r.claims.Get(r.t.Context(), idempotency.Key{Scope: kind, Value: id})
			return err == nil && record.State == idempotency.StatusCompleted
		})
	}
}

// wantDead waits until so many jobs are dead and the queue is empty.
func (r *awayRig) wantDead(want int) {
	r.t.Helper()
	var got int
	var err error
	eventually.True(r.t, fmt.Sprintf("%d dead letters and an empty queue", want), func() bool {
		depth, depthErr := r.broker.Depth(r.t.Context(), worker.DefaultQueue)
		var countErr error
		got, countErr = r.dead.Count(r.t.Context(), dlq.Filter{})
		err = errors.Join(depthErr, countErr)
		return err == nil && got == want && depth.Ready.N+depth.Delayed.N+depth.InFlight.N == 0
	})
	if r.t.Failed() {
		r.t.Fatalf("%d dead, %v", got, err)
	}
}

// A claim that was stored although its answer was lost is given back once the database answers: nothing has run, so no attempt is spent.
func claimWhoseAnswerIsLost(t *testing.T, p *place) {
	t.Helper()
	p.unprepared = true // so that a claim is one message, which the server works through although nobody reads the answer
	rig := p.open(t)
	var attempts []int
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{MaxAttempts: 1}, func(_ context.Context, job *worker.Job) error {
		attempts = append(attempts, job.Attempt)
		return nil
	})
	run := rig.start(worker.Config{Registry: registry, Lease: 3 * time.Second})

	// The claim waits in the database for a lock while its connection is cut. It is stored when the lock is gone.
	held, err := pgx.Connect(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close(context.WithoutCancel(t.Context())) }()
	if _, err := held.Exec(t.Context(), "BEGIN; LOCK TABLE "+pgx.Identifier{rig.schema, "claims"}.Sanitize()+" IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	ids := rig.enqueue("job", 1)
	eventually.True(t, "the claim waits for the lock", func() bool { return p.waiting(t) > 0 })
	p.proxy.Cut()
	eventually.True(t, "the worker has given up", func() bool { return run.Ready() != nil })
	if _, err := held.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the claim whose answer was lost is stored", func() bool { return rig.claimed(p) == 1 })
	p.proxy.Restore()
	rig.completed("job", ids)
	rig.wantDead(0)
	if !slices.Equal(attempts, []int{1}) {
		t.Errorf("ran as attempts %v", attempts)
	}
}

// waiting is how many sessions wait for a lock in the database.
func (p *place) waiting(t testing.TB) int {
	return count(t, p, "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
}

// claimed is how many claims are stored.
func (r *awayRig) claimed(p *place) int {
	return count(r.t, p, "SELECT count(*) FROM "+pgx.Identifier{r.schema, "claims"}.Sanitize())
}

func count(t testing.TB, p *place, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
