package worker_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/worker"
)

// txRig is a worker with an embedded queue, claims in PostgreSQL and one keyed kind, "job". Its store goes through a proxy; what the rig looks
// at itself, it looks at directly.
type txRig struct {
	*rig
	t       *testing.T
	proxy   *testserver.Proxy
	pool    *pgxpool.Pool // the store's
	direct  *pgxpool.Pool
	store   *postgres.Store
	schema  string
	effects string
	stopRun context.CancelFunc
	ended   chan error

	mu      sync.Mutex
	settled []*worker.Settled
}

// joins starts a rig and its worker.
func joins(t *testing.T, kind worker.KindConfig, handler func(ctx context.Context, r *txRig, job *worker.Job) error) *txRig {
	t.Helper()
	return joinsWith(t, worker.Config{}, kind, handler)
}

func joinsWith(t *testing.T, cfg worker.Config, kind worker.KindConfig, handler func(ctx context.Context, r *txRig, job *worker.Job) error) *txRig {
	t.Helper()
	r := openTxRig(t)
	if kind.Backoff.IsZero() {
		kind.Backoff = every(t, 10*time.Millisecond)
	}
	cfg.Registry = worker.NewRegistry()
	work(cfg.Registry, "job", kind, func(ctx context.Context, job *worker.Job) error { return handler(ctx, r, job) })
	r.start(cfg)
	return r
}

func openTxRig(t *testing.T) *txRig {
	t.Helper()
	return openTxRigOf(t, 0)
}

// openTxRigOf is openTxRig with a number of connections for the store; 0 means the usual one.
func openTxRigOf(t *testing.T, conns int) *txRig {
	t.Helper()
	raw := testserver.Postgres(t)
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("the server's URL does not parse")
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "5432")
	}
	r := &txRig{rig: memoryRig(t), t: t, proxy: testserver.StartProxy(t, host)}
	t.Cleanup(func() { _ = r.broker.Close() })
	r.direct, r.schema = testserver.SchemaAt(t, pgdb.Config{URL: raw, MaxConns: 2})
	r.effects = pgx.Identifier{r.schema, "effects"}.Sanitize()
	r.exec("CREATE TABLE " + r.effects + " (job text, attempt int)")
	if r.pool, err = pgdb.Open(t.Context(), pgdb.Config{URL: r.proxy.URL(raw), MaxConns: conns}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	if r.store, err = postgres.New(r.pool, postgres.Config{Schema: r.schema}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.store.Close)
	return r
}

func (r *txRig) start(cfg worker.Config) {
	r.t.Helper()
	if cfg.Broker == nil {
		cfg.Broker = r.broker
	}
	if cfg.Store == nil {
		cfg.Store = r.store
	}
	if cfg.StopGrace == nil {
		cfg.StopGrace, cfg.StopHard = new(time.Duration(0)), new(10*time.Second)
	}
	cfg.DeadLetters, cfg.Observers = r.dead, []worker.Observer{r}
	w, err := worker.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan error, 1)
	r.stopRun, r.ended = cancel, ended
	go func() { ended <- w.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !r.t.Failed() {
			r.t.Errorf("run: %v", err)
		}
	})
}

// stop stops the worker and returns what Run did.
func (r *txRig) stop() error {
	r.stopRun()
	err := <-r.ended
	r.ended <- err
	return err
}

// Observe implements worker.Observer.
func (r *txRig) Observe(e worker.Event) {
	if s, ok := e.(*worker.Settled); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settled = append(r.settled, s)
	}
}

func (r *txRig) enqueue(id string) {
	r.t.Helper()
	if _, err := r.client(r.t).Enqueue(r.t.Context(), worker.NewJob{Kind: "job", ID: id}); err != nil {
		r.t.Fatal(err)
	}
}

// outcomes waits until the job was settled so often, and returns how.
func (r *txRig) outcomes(id string, n int) []*worker.Settled {
	r.t.Helper()
	var list []*worker.Settled
	r.soon("settlements of "+id, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		list = nil
		for _, s := range r.settled {
			if s.Job != nil && s.Job.ID == id {
				list = append(list, s)
			}
		}
		return len(list) >= n
	})
	return list
}

// write takes the attempt's transaction and writes one row.
func (r *txRig) write(ctx context.Context, job *worker.Job) (pgx.Tx, error) {
	tx, err := postgres.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, "INSERT INTO "+r.effects+" VALUES ($1, $2)", job.ID, job.Attempt)
	return tx, err
}

// wrote wants exactly the rows of these attempts, and the key in a state.
func (r *txRig) wrote(id string, state idempotency.Status, attempts ...int) {
	r.t.Helper()
	rows, err := r.direct.Query(r.t.Context(), "SELECT attempt FROM "+r.effects+" WHERE job = $1 ORDER BY attempt", id)
	if err != nil {
		r.t.Fatal(err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		r.t.Fatal(err)
	}
	same := len(stored) == len(attempts)
	for i := range attempts {
		same = same && stored[i] == attempts[i]
	}
	record, err := r.store.Get(r.t.Context(), idempotency.Key{Scope: "job", Value: id})
	if err != nil || record.State != state || !same {
		r.t.Errorf("stored by attempts %v and the key is %s (%v), want %v and %s", stored, record.State, err, attempts, state)
	}
}

// idle wants every connection back soon.
func (r *txRig) idle() {
	r.t.Helper()
	r.soon("all connections are back", func() bool { return r.pool.Stat().AcquiredConns() == 0 })
}

func (r *txRig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.direct.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *txRig) soon(what string, is func() bool) {
	r.t.Helper()
	eventually.True(r.t, what, is)
}
