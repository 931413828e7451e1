package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// proxied is a rig whose store reaches the shared server through a proxy.
func proxied(t *testing.T, cfg postgres.Config) (*joinRig, *testserver.Proxy) {
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
	proxy := testserver.StartProxy(t, host)
	return joinedAt(t, pgdb.Config{URL: raw}, pgdb.Config{URL: proxy.URL(raw)}, cfg), proxy
}

// holdCommits makes every commit that has written an effect wait, on the server, until the returned function lets it go on.
func (r *joinRig) holdCommits() (letGo func()) {
	r.t.Helper()
	wait := pgx.Identifier{r.schema, "wait"}.Sanitize()
	r.exec("CREATE FUNCTION " + wait + "() RETURNS trigger LANGUAGE plpgsql AS " +
		"$$ BEGIN PERFORM pg_advisory_xact_lock_shared(" + "hashtext('" + r.schema + "')); RETURN NULL; END $$")
	r.exec("CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON " + r.effects + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + wait + "()")
	tx, err := r.direct.Begin(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := tx.Exec(r.t.Context(), "SELECT pg_advisory_xact_lock(hashtext($1))", r.schema); err != nil {
		r.t.Fatal(err)
	}
	letGo = sync.OnceFunc(func() { _ = tx.Rollback(context.WithoutCancel(r.t.Context())) })
	r.t.Cleanup(letGo)
	return letGo
}

// committing waits until a commit is held on the server and returns the process that works on it.
func (r *joinRig) committing() (pid int) {
	r.t.Helper()
	r.soon("a commit waits on the server", func() bool {
		err := r.direct.QueryRow(r.t.Context(), "SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND NOT l.granted "+
			"AND l.objid = hashtext($1)::bigint::bit(32)::bigint::oid", r.schema).Scan(&pid)
		return err == nil
	})
	return pid
}

// TestTxAmbiguousCommit loses the network between a commit and its answer. While the server has not decided, nobody says that it has; then the truth
// is told, whichever it is.
func TestTxAmbiguousCommit(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, proxy := proxied(t, postgres.Config{})
			letGo := r.holdCommits()
			held := r.claim("doubt")
			tx := r.begin(held)
			r.insert(tx, "doubt")
			c := idempotency.Completion{Handle: held}
			answer := make(chan error, 1)
			go func() { answer <- tx.Commit(t.Context(), c) }()
			pid := r.committing()

			proxy.Cut()
			if err := <-answer; !inDoubt(err) {
				t.Fatalf("with the network cut: %v", err)
			}
			if err := tx.Commit(t.Context(), c); !inDoubt(err) {
				t.Fatalf("with the network still cut: %v", err)
			}
			proxy.Restore()
			asked, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if err := tx.Commit(asked, c); !inDoubt(err) {
				t.Fatalf("while the server has not decided: %v", err)
			}
			if !committed {
				r.exec("SELECT pg_terminate_backend($1)", pid)
			}
			letGo()
			err := tx.Commit(t.Context(), c)
			for inDoubt(err) {
				err = tx.Commit(t.Context(), c)
			}
			if committed {
				if err != nil {
					t.Fatal(err)
				}
				r.is(held, idempotency.StatusCompleted, 1)
			} else {
				if !errors.Is(err, idempotency.ErrRolledBack) {
					t.Fatalf("commit: %v", err)
				}
				r.is(held, idempotency.StatusAcquired, 0)
			}
			if again := tx.Commit(t.Context(), c); !errors.Is(again, err) {
				t.Errorf("once more: %v", again)
			}
			r.idle()
		})
	}
}

func inDoubt(err error) bool {
	return errors.Is(err, idempotency.ErrUnavailable) && !errors.Is(err, idempotency.ErrRolledBack)
}

// TestTxOfALostConnection loses the connection before the commit: nothing can have been stored, and the store was away.
func TestTxOfALostConnection(t *testing.T) {
	t.Parallel()
	r, proxy := proxied(t, postgres.Config{})
	for name, seen := range map[string]bool{"seen by the handler": true, "seen at the end": false} {
		held := r.claim(name)
		tx := r.begin(held)
		r.insert(tx, name)
		proxy.Drop()
		if seen {
			_, _ = handleOf(tx).Exec(t.Context(), "SELECT 1") // swallowed
		}
		err := tx.Commit(t.Context(), idempotency.Completion{Handle: held})
		if !errors.Is(err, idempotency.ErrRolledBack) || !errors.Is(err, idempotency.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		r.is(held, idempotency.StatusAcquired, 0)
	}
	r.idle()
}

// A database that is away answers Begin at once, and one that is back answers although every idle connection is dead.
func TestTxBeginAndADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	r, proxy := proxied(t, postgres.Config{})
	held := r.claim("away")
	var txs []idempotency.Tx
	for range cap3 {
		txs = append(txs, r.begin(held))
	}
	for _, tx := range txs {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Drop()
	if err := r.begin(held).Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	proxy.Cut()
	for range 2 * cap3 { // a failed begin takes no place
		if _, err := r.store.Begin(t.Context(), held); !errors.Is(err, idempotency.ErrUnavailable) {
			t.Errorf("begin: %v", err)
		}
	}
	proxy.Restore()
	if err := r.begin(held).Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	r.idle()
}

const cap3 = 3

// TestTxTakenFromAHandlerThatGoesOn rolls back while another goroutine is in the middle of a statement: its statement ends, on the server too.
func TestTxTakenFromAHandlerThatGoesOn(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	held := r.claim("stuck")
	tx := r.begin(held)
	r.insert(tx, "stuck")
	ended := make(chan error, 1)
	go func() {
		_, err := handleOf(tx).Exec(t.Context(), sleep(r))
		ended <- err
	}()
	r.soon("the statement runs", func() bool { return r.running() == 1 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the handler's statement ended well")
	}
	if _, err := handleOf(tx).Exec(t.Context(), "SELECT 1"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("the next one: %v", err)
	}
	r.soon("the statement has ended on the server", func() bool { return r.running() == 0 })
	r.is(held, idempotency.StatusAcquired, 0)
	r.idle()
}

// running counts the statements of sleep that the server works on.
func (r *joinRig) running() (n int) {
	r.t.Helper()
	if err := r.direct.QueryRow(r.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1", sleep(r)).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func sleep(r *joinRig) string { return "SELECT pg_sleep(60) /* " + r.schema + " */" }

// TestTxAfterTheEnd refuses every method of a transaction that is over.
func TestTxAfterTheEnd(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	tx := r.begin(r.claim("over"))
	h := handleOf(tx)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, begin := h.Begin(ctx)
	_, execute := h.Exec(ctx, "SELECT 1")
	_, query := h.Query(ctx, "SELECT 1")
	_, prepare := h.Prepare(ctx, "p", "SELECT 1")
	_, copied := h.CopyFrom(ctx, r.onceName, []string{"id"}, pgx.CopyFromRows(nil))
	b := &pgx.Batch{}
	b.Queue("SELECT 1")
	for name, err := range map[string]error{
		"begin": begin, "exec": execute, "query": query, "prepare": prepare, "copy": copied, "row": h.QueryRow(ctx, "SELECT 1").Scan(new(int)),
		"batch": h.SendBatch(ctx, b).Close(), "rollback": h.Rollback(ctx),
	} {
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTxLeavesConnectionsForClaims has more handlers than connections: those without one wait, and claims, heartbeats and completions go on.
func TestTxLeavesConnectionsForClaims(t *testing.T) {
	t.Parallel()
	raw := testserver.Postgres(t)
	r := joinedAt(t, pgdb.Config{URL: raw}, pgdb.Config{URL: raw, MaxConns: 3}, postgres.Config{})
	var inside sync.WaitGroup
	helds := make([]idempotency.Handle, 20)
	for i := range helds {
		helds[i] = r.claim("many-" + string(rune('a'+i)))
	}
	first := r.begin(helds[0]) // the one that a pool of three gives to handlers
	for _, held := range helds[1:] {
		inside.Go(func() {
			tx, err := r.store.Begin(t.Context(), held)
			if err == nil {
				_, err = handleOf(tx).Exec(t.Context(), "INSERT INTO "+r.effects+" VALUES ($1)", held.Key.Value)
				err = errors.Join(err, tx.Commit(t.Context(), idempotency.Completion{Handle: held}))
			}
			if err != nil {
				t.Errorf("%s: %v", held.Key.Value, err)
			}
		})
	}
	for range 10 {
		for _, err := range r.store.Extend(t.Context(), []idempotency.Extension{{Handle: helds[0], Lease: time.Minute}}) {
			if err != nil {
				t.Errorf("extend: %v", err)
			}
		}
	}
	another := r.claim("another")
	if err := r.store.Complete(t.Context(), []idempotency.Completion{{Handle: another}})[0]; err != nil {
		t.Errorf("complete: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.store.Begin(short, another); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, idempotency.ErrUnavailable) ||
		!strings.Contains(err.Error(), "Transactions") {
		t.Errorf("begin without a connection: %v", err)
	}
	r.insert(first, helds[0].Key.Value)
	if err := first.Commit(t.Context(), idempotency.Completion{Handle: helds[0]}); err != nil {
		t.Error(err)
	}
	inside.Wait()
	for _, held := range helds {
		r.is(held, idempotency.StatusCompleted, 1)
	}
	r.idle()
}

// The server ends a transaction by itself if it does not hear of its worker any more, some time after the handler's end, and no statement before.
func TestTxEndsWithoutItsWorker(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tx, err := r.store.Begin(ctx, r.claim("alone"))
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"idle_in_transaction_session_timeout", "statement_timeout"} {
		var rest time.Duration
		if err := handleOf(tx).QueryRow(ctx, "SELECT current_setting($1)::interval", setting).Scan(&rest); err != nil {
			t.Fatal(err)
		}
		if rest <= time.Minute || rest > 2*time.Minute {
			t.Errorf("%s is %s in the transaction of a handler that has a minute", setting, rest)
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
}

// TestTxThroughAPooler goes through PgBouncer in transaction mode, where a transaction has a server connection and nothing else has.
func TestTxThroughAPooler(t *testing.T) {
	t.Parallel()
	raw := testserver.Postgres(t)
	r := joinedAt(t, pgdb.Config{URL: raw}, pgdb.Config{URL: testserver.PgBouncer(t, raw), Pooler: true}, postgres.Config{})
	for name, do := range map[string]struct {
		handler func(tx pgx.Tx) error
		want    error
	}{
		"good":      {func(pgx.Tx) error { return nil }, nil},
		"swallowed": {func(tx pgx.Tx) error { _, _ = tx.Exec(t.Context(), "SELECT 1/0"); return nil }, idempotency.ErrRolledBack},
		"ended":     {func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), "ROLLBACK; BEGIN"); return err }, idempotency.ErrRolledBack},
		"undone":    {func(tx pgx.Tx) error { return tx.Rollback(t.Context()) }, idempotency.ErrRolledBack},
	} {
		held := r.claim(name)
		tx := r.begin(held)
		r.insert(tx, name)
		if err := do.handler(handleOf(tx)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := tx.Commit(t.Context(), idempotency.Completion{Handle: held}); !errors.Is(err, do.want) {
			t.Errorf("%s: %v", name, err)
		}
		if do.want == nil {
			r.is(held, idempotency.StatusCompleted, 1)
		} else {
			r.is(held, idempotency.StatusAcquired, 0)
		}
	}
	held := r.claim("taken")
	tx := r.begin(held)
	r.insert(tx, "taken")
	ended := make(chan error, 1)
	go func() {
		_, err := handleOf(tx).Exec(t.Context(), sleep(r))
		ended <- err
	}()
	r.soon("the statement runs", func() bool { return r.running() == 1 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the handler's statement ended well")
	}
	r.soon("the statement has ended on the server", func() bool { return r.running() == 0 })
	r.is(held, idempotency.StatusAcquired, 0)
	r.idle()
}
