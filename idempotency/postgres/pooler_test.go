package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// TestConformancePgBouncer has no session of its own: hardly two transactions run in the same one.
func TestConformancePgBouncer(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{URL: testserver.PgBouncer(t, testserver.Postgres(t)), Pooler: true})
}

// The environment of the owner that is killed.
const (
	ownerEnv  = "CAISSON_TEST_OWNER_URL"
	schemaEnv = "CAISSON_TEST_OWNER_SCHEMA"
	killLease = 2 * time.Second
)

// claimAndWait is what the owner does: it claims, prints its token, and waits to be killed.
func claimAndWait(url string) {
	ctx := context.Background()
	pool, err := pgdb.Open(ctx, pgdb.Config{URL: url, Pooler: true})
	if err == nil {
		var store *postgres.Store
		if store, err = postgres.New(pool, postgres.Config{Schema: os.Getenv(schemaEnv)}); err == nil {
			c := store.Claim(ctx, []idempotency.Request{ownersRequest("dying")})[0]
			fmt.Println(c.Token)
			err = c.Err
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func ownersRequest(owner string) idempotency.Request {
	return idempotency.Request{
		Key: idempotency.Key{Scope: "job", Value: "k"}, Job: "job-1", Fingerprint: idempotency.FingerprintOf(nil), Owner: owner, Lease: killLease,
	}
}

// Field case H1 behind a pooler: after a kill -9 nothing is left locked, the claim is taken over within one lease, and all that ends claims
// works through another connection than the one that took them.
func TestKilledOwnerLeavesNoLock(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	url := testserver.PgBouncer(t, server.URL())
	store, _, schema := open(t, pgdb.Config{URL: url, Pooler: true}, postgres.Config{})
	dying := killOwner(t, url, schema)
	wantNoLocks(t, server.URL())

	r := ownersRequest("next")
	var c idempotency.Claim
	wait := time.NewTimer(0)
	defer wait.Stop()
	for waited := time.Duration(0); c.Status != idempotency.StatusAcquired; waited += c.Wait {
		if waited > killLease {
			t.Fatalf("not taken over after a lease of %s", killLease)
		}
		<-wait.C
		if c = store.Claim(t.Context(), []idempotency.Request{r})[0]; c.Err != nil || c.Status != idempotency.StatusAcquired && c.Status != idempotency.StatusBusy {
			t.Fatalf("%s, %v", c.Status, c.Err)
		}
		wait.Reset(c.Wait)
	}
	if c.Token <= dying || c.Attempt != 2 {
		t.Errorf("token %d after token %d, attempt %d", c.Token, dying, c.Attempt)
	}
	held := idempotency.Handle{Key: r.Key, Job: r.Job, Token: dying}
	if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: held}})[0]; !errors.Is(err, idempotency.ErrClaimLost) {
		t.Errorf("the dead owner's completion: %v", err)
	}
	held.Token = c.Token
	for range 3 { // in turn over the pooler's connections
		if err := store.Extend(t.Context(), []idempotency.Extension{{Handle: held, Lease: killLease}})[0]; err != nil {
			t.Errorf("extend: %v", err)
		}
	}
	if err := store.Abandon(t.Context(), []idempotency.Abandonment{{Handle: held}})[0]; err != nil {
		t.Errorf("abandon: %v", err)
	}
	wantNoLocks(t, server.URL())
}

// killOwner has a process take the claim, kills it, and returns its token.
func killOwner(t *testing.T, url, schema string) (token int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), ownerEnv+"="+url, schemaEnv+"="+schema)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); lines.Scan() {
		token, err = strconv.ParseInt(lines.Text(), 10, 64)
	}
	if err := errors.Join(err, cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() || token == 0 {
		t.Fatalf("the owner was not killed with its claim: %v, token %d", err, token)
	}
	return token
}

// wantNoLocks waits until no session but the one that asks holds a lock.
func wantNoLocks(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		var locks int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()`).Scan(&locks); err != nil {
			t.Fatal(err)
		}
		if locks == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d locks are left", locks)
		}
	}
}
