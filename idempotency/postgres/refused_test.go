package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// An item that the database refuses fails alone, in whichever part of its batch: those that were answered before it keep their answers.
func TestRefusedItemFailsAlone(t *testing.T) {
	t.Parallel()
	store, pool, schema := open(t, pgdb.Config{}, hasty)
	if _, err := pool.Exec(t.Context(), "ALTER TABLE "+schema+".claims ADD CHECK (owner <> 'refused')"); err != nil {
		t.Fatal(err)
	}
	ended := request("ended")
	ended.Key.Value = "a key of its own"
	held := heldOf(ended, claimOne(t, store, ended))
	bad := request("bad")
	bad.Key.Value, bad.Owner = "another key", "refused"

	claims := store.Claim(t.Context(), []idempotency.Request{request("a"), bad, request("b")})
	for i, r := range []idempotency.Request{request("a"), bad, request("b")} {
		if r.Owner == "refused" {
			if err := claims[i].Err; err == nil || errors.Is(err, idempotency.ErrUnavailable) {
				t.Errorf("the refused claim: %+v", claims[i])
			}
			continue
		}
		if claims[i].Status != idempotency.StatusAcquired || claims[i].Attempt != 1 {
			t.Errorf("claim of %s: %+v", r.Job, claims[i])
		}
	}
	if err := store.Fail(t.Context(), []idempotency.Failure{{Handle: held}})[0]; err != nil {
		t.Errorf("fail: %v", err)
	}
}

// Ids of jobs may be of any length, also where the key is another.
func TestLongJobUnderAnotherKey(t *testing.T) {
	t.Parallel()
	store, _, _ := open(t, pgdb.Config{}, hasty)
	id := make([]byte, 20_000)
	_, _ = rand.Read(id)
	r := request("key")
	r.Job = string(id)
	if c := claimOne(t, store, r); c.Status != idempotency.StatusAcquired {
		t.Fatalf("claim: %+v", c)
	}
	found, err := store.Find(t.Context(), r.Job)
	if err != nil || len(found.Records) != 1 || found.Records[0].Key != r.Key {
		t.Errorf("found %+v, %v", found, err)
	}
}

// A server that lets nobody in any more, as while a password is changed, is away: completions are tried again, and none is given up.
func TestRefusedConnectionsAreAnOutage(t *testing.T) {
	t.Parallel()
	_, pool, schema := open(t, pgdb.Config{}, hasty)
	var refused atomic.Bool
	cfg := pool.Config()
	cfg.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		if refused.Load() {
			cc.Database = "caisson_no_such_database"
		}
		return nil
	}
	own, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	store, err := postgres.New(own, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	r := request("job")
	held := heldOf(r, claimOne(t, store, r))
	refused.Store(true)
	own.Reset()
	for what, err := range map[string]error{
		"claim":    store.Claim(t.Context(), []idempotency.Request{request("another")})[0].Err,
		"complete": store.Complete(t.Context(), []idempotency.Completion{{Handle: held}})[0],
		"ping":     store.Ping(t.Context()),
	} {
		if !errors.Is(err, idempotency.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := store.Begin(t.Context(), held); !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("begin: %v", err)
	}
	refused.Store(false)
	if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: held}})[0]; err != nil {
		t.Error(err)
	}
}
