package postgres_test

import (
	"context"
	"errors"
	"net"
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

func TestConcurrentJobsShareRoundTrips(t *testing.T) {
	t.Parallel()
	store, _, _ := open(t, pgdb.Config{}, postgres.Config{})
	cycle(t, store)
	before := store.RoundTrips()
	const jobs = 2000
	workers(jobs, 64, func() { cycle(t, store) })
	if trips := float64(store.RoundTrips()-before) / jobs; trips > 0.15 {
		t.Errorf("%.3f round trips a job with 64 in flight, want at most 0.15", trips)
	}
}

// Everything but a new claim of old rows is answered in one round trip.
func TestKnownKeysAnswerInOneRoundTrip(t *testing.T) {
	t.Parallel()
	store, _, _ := open(t, pgdb.Config{}, postgres.Config{})
	r := request("job")
	c := claimOne(t, store, r)
	trips := func(what string, do func()) {
		t.Helper()
		before := store.RoundTrips()
		do()
		if n := store.RoundTrips() - before; n != 1 {
			t.Errorf("%s took %d round trips", what, n)
		}
	}
	claims := func(r idempotency.Request, want idempotency.Status) func() {
		return func() {
			t.Helper()
			if c := claimOne(t, store, r); c.Status != want {
				t.Errorf("answers %v, want %v", c.Status, want)
			}
		}
	}
	other := r
	other.Fingerprint = idempotency.FingerprintOf([]byte("other"))
	trips("busy", claims(r, idempotency.StatusBusy))
	trips("conflict", claims(other, idempotency.StatusConflict))
	trips("a first claim", claims(request("another"), idempotency.StatusAcquired))
	trips("completion", func() {
		if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: heldOf(r, c)}})[0]; err != nil {
			t.Error(err)
		}
	})
	trips("completed", claims(r, idempotency.StatusCompleted))
	late := request("late")
	c = claimOne(t, store, late)
	trips("abandon", func() {
		if err := store.Abandon(t.Context(), []idempotency.Abandonment{{Handle: heldOf(late, c), Delay: time.Hour}})[0]; err != nil {
			t.Error(err)
		}
	})
	trips("not due", claims(late, idempotency.StatusNotDue))
}

func TestCollidingKeysFailAlone(t *testing.T) {
	t.Parallel()
	store, _, _ := open(t, pgdb.Config{}, postgres.Config{})
	first, second, third := request(postgres.Colliding+"1"), request(postgres.Colliding+"2"), request("plain")
	c := claimOne(t, store, first)
	claims := store.Claim(t.Context(), []idempotency.Request{second, third})
	if err := claims[0].Err; err == nil || errors.Is(err, idempotency.ErrUnavailable) || !strings.Contains(err.Error(), "choose another key") {
		t.Errorf("a colliding key answers %v, %v", claims[0].Status, err)
	}
	if claims[1].Status != idempotency.StatusAcquired {
		t.Errorf("the key beside it answers %v, %v", claims[1].Status, claims[1].Err)
	}
	if _, err := store.Get(t.Context(), second.Key); !errors.Is(err, idempotency.ErrNotFound) {
		t.Errorf("get of the colliding key: %v", err)
	}
	if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: heldOf(first, c)}})[0]; err != nil {
		t.Errorf("the first key: %v", err)
	}
}

// Connections are killed again and again in the middle of their work: every key is completed once, nobody holds a key that somebody else holds.
func TestKilledConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	store, pool, _ := open(t, pgdb.Config{Name: "killed " + t.Name()}, postgres.Config{})
	killer, err := pgdb.Open(t.Context(), pgdb.Config{URL: testserver.Postgres(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer killer.Close()
	race := newRace(30)
	for i := range race.keys {
		race.keys[i].request.Lease = 3 * time.Second // what an orphaned claim costs
	}
	done := make(chan struct{})
	var workers, kills sync.WaitGroup
	killed := 0
	kills.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			tag, err := killer.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND state <> 'idle'",
				pgx.QueryExecModeExec, pool.Config().ConnConfig.RuntimeParams["application_name"])
			if err != nil {
				t.Errorf("kill: %v", err)
			}
			killed += int(tag.RowsAffected())
		}
	})
	for range 8 {
		workers.Go(func() { race.work(t, store) })
	}
	workers.Wait()
	close(done)
	kills.Wait()
	race.check(t, store)
	if killed == 0 {
		t.Error("no connection was killed: the test has shown nothing")
	}
}

func TestPingNeedsWrites(t *testing.T) {
	t.Parallel()
	store, _, schema := open(t, pgdb.Config{}, postgres.Config{})
	if err := store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := testserver.Postgres(t)
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: url + map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] +
		"default_transaction_read_only=on"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	standby, err := postgres.New(pool, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	if err := standby.Ping(t.Context()); !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("a read-only database answers %v", err)
	}
	if c := standby.Claim(t.Context(), []idempotency.Request{request("job")})[0]; !errors.Is(c.Err, idempotency.ErrUnavailable) {
		t.Errorf("a claim in a read-only database answers %v, %v", c.Status, c.Err)
	}
}

func TestDatabaseAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: "postgres://caisson:secret@" + address + "/x?sslmode=disable"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := request("job")
	_, getErr := store.Get(t.Context(), r.Key)
	_, expireErr := store.Expire(t.Context(), 1)
	for what, err := range map[string]error{
		"claim": store.Claim(t.Context(), []idempotency.Request{r})[0].Err, "get": getErr, "expire": expireErr, "ping": store.Ping(t.Context()),
		"complete": store.Complete(t.Context(), []idempotency.Completion{{Handle: heldOf(r, idempotency.Claim{Token: 1})}})[0],
	} {
		if !errors.Is(err, idempotency.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s answers %v", what, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c := store.Claim(ctx, []idempotency.Request{r})[0]; !errors.Is(c.Err, context.Canceled) {
		t.Errorf("a call that has ended answers %v", c.Err)
	}
}
