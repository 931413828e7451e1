package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/handlertx"
)

func TestTxStoresEffectAndCompletionTogether(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	held := r.claim("together")
	tx := r.begin(held)
	r.insert(tx, "together")
	if n := r.rows("together"); n != 0 {
		t.Errorf("%d rows are seen before the commit", n)
	}
	c := idempotency.Completion{Handle: held, Result: idempotency.NewResult([]byte("done"))}
	if err := tx.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.is(held, idempotency.StatusCompleted, 1)
	if record := r.record(held.Key); string(record.Result.Data) != "done" {
		t.Errorf("the result is %q", record.Result.Data)
	}
	if err := errors.Join(tx.Commit(t.Context(), c), tx.Rollback(t.Context())); err != nil {
		t.Errorf("once more: %v", err)
	}
	r.is(held, idempotency.StatusCompleted, 1)
	if _, err := handleOf(tx).Exec(t.Context(), "SELECT 1"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("a statement after the end: %v", err)
	}
}

func TestTxRollbackStoresNothing(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	held := r.claim("back")
	tx := r.begin(held)
	r.insert(tx, "back")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.is(held, idempotency.StatusAcquired, 0)
	if err := tx.Commit(t.Context(), idempotency.Completion{Handle: held}); !errors.Is(err, idempotency.ErrRolledBack) {
		t.Errorf("commit after rollback: %v", err)
	}
	r.is(held, idempotency.StatusAcquired, 0)
}

// TestTxOfCareless holds what handlers do and do not notice against the commit: after a nil from them, either everything is stored or nothing.
func TestTxOfCarelessHandlers(t *testing.T) {
	t.Parallel()
	const uniqueViolation, foreignKey = "23505", "23503"
	for name, c := range map[string]struct {
		do   func(ctx context.Context, r *joinRig, tx pgx.Tx) error
		want string // in the error; empty for a commit
	}{
		"swallowed error": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "INSERT INTO "+r.once+" VALUES (1), (1)")
			_, _ = tx.Exec(ctx, "SELECT 1") // fails too, and is not the reason
			return nil
		}, uniqueViolation},
		"swallowed error of a query": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, "INSERT INTO "+r.once+" VALUES (1), (1) RETURNING 1")
			rows.Close()
			return nil
		}, uniqueViolation},
		"swallowed error of a row": {func(ctx context.Context, _ *joinRig, tx pgx.Tx) error {
			var n int
			_ = tx.QueryRow(ctx, "SELECT 1/(n-1) FROM generate_series(1, 1) n").Scan(&n)
			return nil
		}, "22012"},
		"swallowed error of a batch": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue("INSERT INTO " + r.once + " VALUES (1)")
			b.Queue("INSERT INTO " + r.once + " VALUES (1)")
			_ = tx.SendBatch(ctx, b).Close()
			return nil
		}, uniqueViolation},
		"swallowed error of a copy": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			_, _ = tx.CopyFrom(ctx, r.onceName, []string{"id"}, pgx.CopyFromRows([][]any{{1}, {1}}))
			return nil
		}, uniqueViolation},
		"error undone by a savepoint": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO "+r.once+" VALUES (1), (1)")
				return err
			})
			if err == nil {
				return errors.New("the savepoint had no error")
			}
			return nil
		}, ""},
		"savepoints": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, "INSERT INTO "+r.once+" VALUES (1)")
					return err
				})
			})
		}, ""},
		"no row": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			var n int
			if err := tx.QueryRow(ctx, "SELECT id FROM "+r.once).Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		}, ""},
		"commit": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			if err := tx.Commit(ctx); err == nil || !strings.Contains(err.Error(), "the worker") {
				r.t.Errorf("a handler's commit: %v", err)
			}
			return nil
		}, ""},
		"rollback":        {func(ctx context.Context, _ *joinRig, tx pgx.Tx) error { return tx.Rollback(ctx) }, "defer tx.Rollback"},
		"commit by SQL":   {runs("COMMIT"), "ended it by SQL"},
		"rollback by SQL": {runs("ROLLBACK"), "ended it by SQL"},
		"another by SQL":  {runs("ROLLBACK AND CHAIN"), "ended it by SQL"},
		"another by two":  {runs("ROLLBACK; BEGIN"), "ended it by SQL"},
		"deferred foreign key": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+r.child+" VALUES (7)")
			return err
		}, foreignKey},
		"open rows": {func(ctx context.Context, _ *joinRig, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			if err == nil && !rows.Next() {
				err = errors.New("no rows")
			}
			return err
		}, "rows were open"},
		"context of a statement": {func(ctx context.Context, _ *joinRig, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, _ = tx.Exec(ctx, "SELECT pg_sleep(60)")
			return nil
		}, "deadline exceeded"},
		"raw connection": {func(ctx context.Context, r *joinRig, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, "INSERT INTO "+r.once+" VALUES (1)")
			return err
		}, ""},
		"everything else": {everything, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := joined(t, postgres.Config{})
			held := r.claim(name)
			tx := r.begin(held)
			r.insert(tx, name)
			if err := c.do(t.Context(), r, handleOf(tx)); err != nil {
				t.Fatal(err)
			}
			err := tx.Commit(t.Context(), idempotency.Completion{Handle: held})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				r.is(held, idempotency.StatusCompleted, 1)
				return
			}
			if !errors.Is(err, idempotency.ErrRolledBack) || errors.Is(err, idempotency.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("commit: %v; want a rollback that mentions %q", err, c.want)
			}
			if name == "commit by SQL" {
				return // its effects are stored, against all advice
			}
			r.is(held, idempotency.StatusAcquired, 0)
		})
	}
}

func runs(sql string) func(context.Context, *joinRig, pgx.Tx) error {
	return func(ctx context.Context, _ *joinRig, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
}

// everything uses the rest of pgx.Tx.
func everything(ctx context.Context, r *joinRig, tx pgx.Tx) error {
	if _, err := tx.CopyFrom(ctx, r.onceName, []string{"id"}, pgx.CopyFromRows([][]any{{1}, {2}})); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("SELECT id FROM " + r.once + " ORDER BY id").Query(func(rows pgx.Rows) error {
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if len(ids) != 2 {
			r.t.Errorf("copied %v", ids)
		}
		return err
	})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if _, err := tx.Prepare(ctx, "one", "SELECT $1::int"); err != nil {
		return err
	}
	objects := tx.LargeObjects()
	oid, err := objects.Create(ctx, 0)
	if err != nil {
		return err
	}
	return objects.Unlink(ctx, oid)
}

// A claim that somebody else took over makes the transaction void, however far it came.
func TestTxOfALostClaimIsVoid(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	held := r.claimFor("lost", time.Millisecond)
	tx := r.begin(held)
	r.insert(tx, "lost")
	other := r.takeOver(held)
	if err := tx.Commit(t.Context(), idempotency.Completion{Handle: held}); !errors.Is(err, idempotency.ErrClaimLost) {
		t.Fatalf("commit: %v", err)
	}
	r.is(other, idempotency.StatusAcquired, 0)
}

// Two transactions that each write what the other has read: one of them is refused at its end, and says so.
func TestTxSerializationFailure(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}})
	names := []string{"skew-a", "skew-b"}
	var txs []idempotency.Tx
	var helds []idempotency.Handle
	for i, name := range names {
		held := r.claim(name)
		tx := r.begin(held)
		if _, err := handleOf(tx).Exec(t.Context(), "SELECT count(*) FROM "+r.effects+" WHERE job = $1", names[1-i]); err != nil {
			t.Fatal(err)
		}
		helds, txs = append(helds, held), append(txs, tx)
	}
	for i, tx := range txs {
		r.insert(tx, names[i])
	}
	if err := txs[0].Commit(t.Context(), idempotency.Completion{Handle: helds[0]}); err != nil {
		t.Fatal(err)
	}
	err := txs[1].Commit(t.Context(), idempotency.Completion{Handle: helds[1]})
	if !errors.Is(err, idempotency.ErrRolledBack) || errors.Is(err, idempotency.ErrUnavailable) || !strings.Contains(err.Error(), "40001") {
		t.Errorf("commit: %v", err)
	}
	r.is(helds[0], idempotency.StatusCompleted, 1)
	r.is(helds[1], idempotency.StatusAcquired, 0)
}

func TestTxOptionsAreChecked(t *testing.T) {
	t.Parallel()
	r := joined(t, postgres.Config{})
	for name, cfg := range map[string]postgres.Config{
		"read only": {TxOptions: pgx.TxOptions{AccessMode: pgx.ReadOnly}},
		"own begin": {TxOptions: pgx.TxOptions{BeginQuery: "begin priority high"}},
		"all":       {Transactions: int(r.pool.Config().MaxConns)},
		"negative":  {Transactions: -1},
	} {
		cfg.Schema = r.schema
		store, err := postgres.New(r.pool, cfg)
		if err == nil {
			store.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTxFromOutsideOfAHandler(t *testing.T) {
	t.Parallel()
	if _, err := postgres.TxFrom(t.Context()); !errors.Is(err, idempotency.ErrNoTx) {
		t.Errorf("outside: %v", err)
	}
	ctx := context.WithValue(t.Context(), handlertx.Key{}, foreign{})
	if _, err := postgres.TxFrom(ctx); !errors.Is(err, idempotency.ErrNoTx) || !strings.Contains(err.Error(), "string") {
		t.Errorf("with another store's transaction: %v", err)
	}
}

type foreign struct{}

func (foreign) TakeTx(context.Context) (any, error) { return "no pgx.Tx", nil }
