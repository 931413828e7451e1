package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

// rotating opens a store that opens a new generation with each Expire.
func rotating(t *testing.T) (*postgres.Store, *pgxpool.Pool, string) {
	t.Helper()
	pool, schema := testserver.Schema(t)
	return open(t, pool, postgres.Config{Schema: schema, Generation: time.Microsecond}), pool, schema
}

func letter(job string) dlq.Entry {
	return dlq.Entry{
		Job: job, State: dlq.StateDead, Queue: "q", Kind: "k", Destination: "d", Cause: dlq.CauseExhausted, Error: "boom",
		Message: queue.Message{Body: []byte(`{"job":"` + job + `"}`)},
	}
}

func put(t *testing.T, store *postgres.Store, entries ...dlq.Entry) {
	t.Helper()
	for i, err := range store.Put(t.Context(), entries) {
		if err != nil {
			t.Fatalf("put %s: %v", entries[i].Job, err)
		}
	}
}

func expire(t *testing.T, store *postgres.Store, retention time.Duration) int {
	t.Helper()
	n, err := store.Expire(t.Context(), retention, 1)
	if err != nil {
		t.Fatalf("expire: %v", err)
	}
	return n
}

func number(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func replay(t *testing.T, store *postgres.Store, owner, id string) {
	t.Helper()
	found, err := store.Reserve(t.Context(), dlq.Filter{IDs: []string{id}}, dlq.Reservation{Owner: owner, For: time.Hour, Limit: 1})
	if err != nil || len(found) != 1 || len(found[0].Message.Body) == 0 {
		t.Fatalf("reserve %s: %+v, %v", id, found, err)
	}
	if errs := store.Resolve(t.Context(), owner, []dlq.Resolution{{ID: id, To: dlq.StateReplayed}}); errs[0] != nil {
		t.Fatalf("resolve %s: %v", id, errs[0])
	}
}

// What is held, reserved or changed late moves forward with its message; the rest goes with its generation.
func TestExpireDropsGenerationsWhole(t *testing.T) {
	t.Parallel()
	store, pool, schema := rotating(t)
	const retention = 500 * time.Millisecond
	for i := range 20 {
		put(t, store, letter(fmt.Sprint("old-", i)))
	}
	held, reserved, late, purged := letter("held"), letter("reserved"), letter("late"), letter("purged")
	held.State = dlq.StateHeld
	put(t, store, held, reserved, late, purged)
	if _, err := store.Reserve(t.Context(), dlq.Filter{Job: "reserved"}, dlq.Reservation{Owner: "o", For: time.Hour, Limit: 1}); err != nil {
		t.Fatal(err)
	}
	expire(t, store, time.Hour)
	time.Sleep(retention) // what is under test is time going by
	replay(t, store, "late", "late.0")
	if n, err := store.Purge(t.Context(), dlq.Filter{Job: "purged"}); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	changed := time.Now()
	removed := 0
	for removed < 20 {
		removed += expire(t, store, retention)
		if time.Since(changed) > 20*time.Second {
			t.Fatalf("only %d of 20 entries were removed", removed)
		}
	}
	for _, id := range []string{"old-0.0", "old-19.0"} {
		if _, err := store.Get(t.Context(), id); !errors.Is(err, dlq.ErrNotFound) {
			t.Errorf("%s is still there: %v", id, err)
		}
	}
	for _, id := range []string{"held.0", "reserved.0"} {
		if e, err := store.Get(t.Context(), id); err != nil || len(e.Message.Body) == 0 {
			t.Errorf("%s lost its message, or itself: %+v, %v", id, e, err)
		}
	}
	if depth, err := store.Depth(t.Context()); err != nil || len(depth.Held) != 1 || depth.Held[0].Count != 1 || len(depth.Dead) != 1 || depth.Dead[0].Count != 1 {
		t.Errorf("depth %+v, %v: want one held and one dead", depth, err)
	}
	if errs := store.Resolve(t.Context(), "o", []dlq.Resolution{{ID: "reserved.0", To: dlq.StateReplayed}}); errs[0] != nil {
		t.Errorf("a reserved entry cannot be resolved any more: %v", errs[0])
	}
	deadline := time.Now().Add(2 * time.Minute)
	for number(t, pool, "SELECT count(*) FROM "+schema+".dead_letters") > 1 || number(t, pool, "SELECT count(*) FROM "+schema+".dead_messages") > 1 {
		expire(t, store, retention)
		if time.Now().After(deadline) {
			t.Fatal("what changed late never goes, or leaves its message")
		}
	}
	if e, err := store.Get(t.Context(), "held.0"); err != nil || len(e.Message.Body) == 0 {
		t.Errorf("the held one: %+v, %v", e, err)
	}
}

// A change in an entry that is past its retention is not lost with the generation.
func TestLateChangesMoveForward(t *testing.T) {
	t.Parallel()
	store, pool, schema := rotating(t)
	for i := range 5 {
		late, gone := fmt.Sprint("late-", i), fmt.Sprint("gone-", i)
		put(t, store, letter(late), letter(gone))
		for _, statement := range []string{
			"UPDATE %s.dead_letters SET changed_at = changed_at - interval '1 hour' WHERE state = 'dead'",
			"UPDATE %s.generations SET opened_at = opened_at - interval '1 hour'",
		} {
			if _, err := pool.Exec(t.Context(), fmt.Sprintf(statement, schema)); err != nil {
				t.Fatal(err)
			}
		}
		expire(t, store, 100*time.Hour) // the next generation
		if _, err := pool.Exec(t.Context(), fmt.Sprintf("UPDATE %s.generations SET opened_at = opened_at - interval '1 hour'", schema)); err != nil {
			t.Fatal(err)
		}
		replay(t, store, "replay", late+".0")
		deadline := time.Now().Add(2 * time.Minute)
		for number(t, pool, "SELECT count(*) FROM "+schema+".dead_letters WHERE job = $1::bytea", []byte(gone)) > 0 {
			expire(t, store, 30*time.Minute)
			if time.Now().After(deadline) {
				t.Fatalf("%s never goes", gone)
			}
		}
		if e, err := store.Get(t.Context(), late+".0"); err != nil || e.State != dlq.StateReplayed || e.ClosedBy != "replay" || len(e.Message.Body) == 0 {
			t.Fatalf("%s: %+v, %v", late, e, err)
		}
	}
}

// rotate opens generations until the function that it returns is called.
func rotate(t *testing.T, store *postgres.Store) (stop func() int) {
	t.Helper()
	done := make(chan struct{})
	var n atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		for n.Load() < 12 { // each is a partition of two tables that every statement looks at
			select {
			case <-done:
				return
			default:
			}
			if _, err := store.Expire(t.Context(), time.Hour, 1); err != nil && !errors.Is(err, dlq.ErrUnavailable) {
				t.Errorf("expire: %v", err)
			}
			n.Add(1)
		}
	})
	return func() int { close(done); wg.Wait(); return int(n.Load()) }
}

// Many workers put the same dead letters at the same time while generations are opened: each is stored once.
func TestPutOnceWhileGenerationsAreOpened(t *testing.T) {
	t.Parallel()
	store, pool, schema := rotating(t)
	stop := rotate(t, store)
	const jobs, workers = 150, 4
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := 0; i < jobs; i += 3 {
				batch := []dlq.Entry{letter(fmt.Sprint(i)), letter(fmt.Sprint(i + 1)), letter(fmt.Sprint(i + 2))}
				if worker%2 == 0 {
					batch[1].State = dlq.StateHeld // and dead by another
					batch[2].Message.Body = []byte("another payload")
				}
				for _, err := range store.Put(t.Context(), batch) {
					if err != nil {
						t.Errorf("put: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := stop(); n < 2 {
		t.Errorf("only %d generations were opened meanwhile", n)
	}
	table := schema + ".dead_letters"
	if n := number(t, pool, "SELECT count(*) FROM (SELECT FROM "+table+" GROUP BY id HAVING count(*) > 1) twice"); n > 0 {
		t.Errorf("%d entries are there twice", n)
	}
	if all, want := number(t, pool, "SELECT count(*) FROM "+table), jobs+jobs/3; all != want {
		t.Errorf("%d entries, want %d", all, want)
	}
	if n := number(t, pool, "SELECT count(*) FROM "+table+" WHERE state <> 'dead'"); n != 0 {
		t.Errorf("%d entries are held after they died", n)
	}
	if n := number(t, pool, "SELECT count(*) FROM "+table+" d FULL JOIN "+schema+".dead_messages m USING (seq) WHERE d.id IS NULL OR m.body IS NULL"); n > 0 {
		t.Errorf("%d entries and messages are alone", n)
	}
	if depth, err := store.Depth(t.Context()); err != nil || len(depth.Dead) != 1 || depth.Dead[0].Count != jobs+jobs/3 || len(depth.Held) > 0 {
		t.Errorf("depth %+v, %v", depth, err)
	}
}

// Many owners reserve and resolve while generations are opened: none gets what another one has.
func TestReserveOnceWhileGenerationsAreOpened(t *testing.T) {
	t.Parallel()
	store, pool, schema := rotating(t)
	const jobs, owners = 300, 6
	var batch []dlq.Entry
	for i := range jobs {
		batch = append(batch, letter(fmt.Sprint(i)))
	}
	put(t, store, batch...)
	stop := rotate(t, store)
	var taken sync.Map
	var wg sync.WaitGroup
	for i := range owners {
		wg.Go(func() { replayAll(t, store, fmt.Sprint("owner-", i), &taken) })
	}
	wg.Wait()
	stop()
	if n := number(t, pool, "SELECT count(*) FROM "+schema+".dead_letters WHERE state = 'replayed' AND closed_by IS NOT NULL"); n != jobs {
		t.Errorf("%d of %d entries are replayed", n, jobs)
	}
}

func replayAll(t *testing.T, store *postgres.Store, owner string, taken *sync.Map) {
	for {
		found, err := store.Reserve(t.Context(), dlq.Filter{}, dlq.Reservation{Owner: owner, For: time.Hour, Limit: 7, MaxBytes: 60})
		if err != nil {
			t.Errorf("reserve: %v", err)
			return
		}
		if len(found) == 0 {
			return
		}
		rs := make([]dlq.Resolution, len(found))
		for i, e := range found {
			if other, twice := taken.LoadOrStore(e.ID, owner); twice {
				t.Errorf("%s was given to %s and to %s", e.ID, other, owner)
			}
			rs[i] = dlq.Resolution{ID: e.ID, To: dlq.StateReplayed}
		}
		for _, err := range store.Resolve(context.WithoutCancel(t.Context()), owner, rs) {
			if err != nil {
				t.Errorf("resolve: %v", err)
			}
		}
	}
}
