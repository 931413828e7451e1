package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/jsonmatch"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// An entry that the database refuses fails alone in its batch.
func TestBadEntryFailsAlone(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	store := open(t, pool, postgres.Config{Schema: schema})
	bad := letter("bad")
	bad.EnqueuedAt = time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC) // past what timestamptz holds
	errs := store.Put(t.Context(), []dlq.Entry{letter("a"), bad, letter("b")})
	if errs[0] != nil || errs[1] == nil || errors.Is(errs[1], dlq.ErrUnavailable) || errs[2] != nil {
		t.Errorf("put answers %v, want an error for the second that does not pass", errs)
	}
	if n, err := store.Count(t.Context(), dlq.Filter{}); n != 2 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}

// A server that is away is ErrUnavailable to every call, and no longer than it is away.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	url := testserver.Postgres(t)
	_, schema := testserver.Schema(t)
	proxy := testserver.StartProxy(t, "127.0.0.1:5432")
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: proxy.URL(url)})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store := open(t, pool, postgres.Config{Schema: schema})
	put(t, store, letter("before"))
	proxy.Cut()
	calls := map[string]func() error{
		"put":    func() error { return store.Put(t.Context(), []dlq.Entry{letter("during")})[0] },
		"get":    func() error { _, err := store.Get(t.Context(), "before.0"); return err },
		"list":   func() error { _, _, err := store.List(t.Context(), dlq.Filter{}, "", 1); return err },
		"count":  func() error { _, err := store.Count(t.Context(), dlq.Filter{JSON: []jsonmatch.Match{{}}}); return err },
		"groups": func() error { _, err := store.Groups(t.Context(), dlq.Filter{}); return err },
		"depth":  func() error { _, err := store.Depth(t.Context()); return err },
		"purge":  func() error { _, err := store.Purge(t.Context(), dlq.Filter{Kind: "none"}); return err },
		"expire": func() error { _, err := store.Expire(t.Context(), time.Hour, 1); return err },
		"resolve": func() error {
			return store.Resolve(t.Context(), "o", []dlq.Resolution{{ID: "before.0", To: dlq.StateDead}})[0]
		},
		"reserve": func() error {
			_, err := store.Reserve(t.Context(), dlq.Filter{}, dlq.Reservation{Owner: "o", For: time.Hour, Limit: 1})
			return err
		},
		"audit":       func() error { _, err := store.Audit(t.Context(), "a"); return err },
		"audits":      func() error { _, _, err := store.Audits(t.Context(), "", 1); return err },
		"begin audit": func() error { _, err := store.BeginAudit(t.Context(), audit.Record{ID: "a", Action: "x"}); return err },
		"end audit":   func() error { return store.EndAudit(t.Context(), "a", audit.StateDone, audit.Counts{}, "") },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, dlq.ErrUnavailable) {
			t.Errorf("%s without a server answers %v", name, err)
		}
	}
	proxy.Restore()
	deadline := time.Now().Add(2 * time.Minute)
	for store.Put(t.Context(), []dlq.Entry{letter("after")})[0] != nil {
		if time.Now().After(deadline) {
			t.Fatal("the store does not come back")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Connections are killed while all work: what was reported holds, errors pass, and in the end every entry was stored once and replayed.
func TestKilledConnections(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	victims, err := pgdb.Open(t.Context(), pgdb.Config{URL: testserver.Postgres(t), Name: "victim " + schema})
	if err != nil {
		t.Fatal(err)
	}
	defer victims.Close()
	store := open(t, victims, postgres.Config{Schema: schema})
	const jobs, workers = 100, 3
	done := make(chan struct{})
	var killer, crowd sync.WaitGroup
	killed := 0
	killer.Go(func() {
		for killed < 40 {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond): // the rate of the faults
			}
			n := number(t, pool, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = $1 ORDER BY random() LIMIT 1) x`, "victim "+schema)
			killed += n
		}
	})
	deadline := time.Now().Add(time.Minute)
	for w := range workers {
		crowd.Go(func() { putThroughFaults(t, store, jobs, deadline) })
		crowd.Go(func() { replayThroughFaults(t, store, fmt.Sprint("owner-", w), jobs, deadline) })
	}
	crowd.Wait()
	close(done)
	killer.Wait()
	if killed == 0 {
		t.Error("no connection was killed")
	}
	calm := open(t, pool, postgres.Config{Schema: schema})
	if n, err := calm.Count(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateReplayed}}); n != jobs || err != nil {
		t.Errorf("%d entries are replayed, %v, want %d", n, err, jobs)
	}
	if n := number(t, pool, "SELECT count(*) FROM "+schema+".dead_letters d JOIN "+schema+".dead_messages m USING (seq)"); n != jobs {
		t.Errorf("%d entries with a message, want %d", n, jobs)
	}
	if depth, err := calm.Depth(t.Context()); err != nil || len(depth.Dead)+len(depth.Held) > 0 {
		t.Errorf("depth %+v, %v, want none", depth, err)
	}
}

// passes reports whether err is nil; any other error than one that passes fails the test.
func passes(t *testing.T, what string, err error) bool {
	if err != nil && !errors.Is(err, dlq.ErrUnavailable) {
		t.Errorf("%s: %v", what, err)
	}
	return err == nil
}

func putThroughFaults(t *testing.T, store *postgres.Store, jobs int, deadline time.Time) {
	for i := 0; i < jobs; i += 5 {
		batch := make([]dlq.Entry, 5)
		for n := range batch {
			batch[n] = letter(fmt.Sprint(i + n))
		}
		for !passes(t, "put", errors.Join(store.Put(t.Context(), batch)...)) {
			if time.Now().After(deadline) || t.Failed() {
				t.Errorf("entry %d cannot be put: %v", i, store.Put(t.Context(), batch)[0])
				return
			}
		}
	}
}

// replayThroughFaults replays until all jobs are. A reservation whose answer was lost runs out.
func replayThroughFaults(t *testing.T, store *postgres.Store, owner string, jobs int, deadline time.Time) {
	for time.Now().Before(deadline) && !t.Failed() {
		found, err := store.Reserve(t.Context(), dlq.Filter{}, dlq.Reservation{Owner: owner, For: 300 * time.Millisecond, Limit: 5})
		if !passes(t, "reserve", err) {
			continue
		}
		if len(found) == 0 {
			n, err := store.Count(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateReplayed}})
			if passes(t, "count", err) && n == jobs {
				return
			}
			continue
		}
		rs := make([]dlq.Resolution, len(found))
		for i, e := range found {
			rs[i] = dlq.Resolution{ID: e.ID, To: dlq.StateReplayed}
		}
		for {
			errs := store.Resolve(t.Context(), owner, rs)
			if errors.Is(errs[0], dlq.ErrNotReserved) || passes(t, "resolve", errs[0]) || t.Failed() {
				break // an answer that was lost is ErrNotReserved the next time
			}
		}
	}
}
