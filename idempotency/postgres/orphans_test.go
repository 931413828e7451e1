package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// A caller stops waiting while its claim waits in the database. Nobody holds the claim that is stored then: it is given back before the next
// one is taken, and no attempt is spent.
func TestClaimOfACallerWhoLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	store, pool, schema := open(t, pgdb.Config{}, postgres.Config{})
	table := pgx.Identifier{schema, "claims"}.Sanitize()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+table+" IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	r := ownersRequest("who left")
	r.Lease = time.Hour
	ctx, leave := context.WithCancel(t.Context())
	answer := make(chan idempotency.Claim, 1)
	go func() { answer <- store.Claim(ctx, []idempotency.Request{r})[0] }()
	await(t, tx, "the claim waits", `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1::text::regclass AND NOT granted)`, table)
	leave()
	if c := <-answer; !errors.Is(c.Err, idempotency.ErrUnavailable) {
		t.Fatalf("the caller who left was told %v, %v", c.Status, c.Err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Owner = "who stays"
	if c := store.Claim(t.Context(), []idempotency.Request{r})[0]; c.Status != idempotency.StatusAcquired || c.Attempt != 1 {
		t.Errorf("the next claim is %v as attempt %d, %v", c.Status, c.Attempt, c.Err)
	}
}

// await waits until a query answers true.
func await(t *testing.T, tx pgx.Tx, what, sql string, args ...any) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		var yes bool
		if err := tx.QueryRow(t.Context(), sql, args...).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain until " + what)
		}
	}
}
