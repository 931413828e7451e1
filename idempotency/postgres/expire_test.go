package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// hasty opens a generation with each Expire and drops the others at once.
var hasty = postgres.Config{Generation: time.Millisecond, Keep: time.Nanosecond}

func heldOf(r idempotency.Request, c idempotency.Claim) idempotency.Handle {
	return idempotency.Handle{Key: r.Key, Job: r.Job, Run: r.Run, Token: c.Token}
}

func claimOne(t *testing.T, store idempotency.Store, r idempotency.Request) idempotency.Claim {
	t.Helper()
	c := store.Claim(t.Context(), []idempotency.Request{r})[0]
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return c
}

func partitions(t *testing.T, pool *pgxpool.Pool, schema string) (n int) {
	t.Helper()
	const query = "SELECT count(*) FROM pg_inherits WHERE inhparent = ($1 || '.claims')::regclass"
	if err := pool.QueryRow(t.Context(), query, schema).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUnfinishedRowsMoveForward(t *testing.T) {
	t.Parallel()
	store, pool, schema := open(t, pgdb.Config{}, hasty)
	own, keyed := request("own"), request("keyed")
	keyed.Key.Value = "a key of its own"
	held := map[string]idempotency.Handle{}
	for _, r := range []idempotency.Request{own, keyed} {
		f := idempotency.Failure{Handle: heldOf(r, claimOne(t, store, r)), Attempt: idempotency.Attempt{Number: 1, Error: "boom"}}
		if err := store.Fail(t.Context(), []idempotency.Failure{f})[0]; err != nil {
			t.Fatal(err)
		}
		held[r.Job] = heldOf(r, claimOne(t, store, r))
	}
	done := request("done")
	c := idempotency.Completion{Handle: heldOf(done, claimOne(t, store, done)), Retention: time.Microsecond}
	if err := store.Complete(t.Context(), []idempotency.Completion{c})[0]; err != nil {
		t.Fatal(err)
	}
	expireUntilGone(t, store, done.Key)
	for range 3 {
		if _, err := store.Expire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := partitions(t, pool, schema); n > 2 {
		t.Errorf("%d partitions are left", n)
	}
	for _, r := range []idempotency.Request{own, keyed} {
		rec, err := store.Get(t.Context(), r.Key)
		if err != nil || rec.State != idempotency.StatusAcquired || rec.Attempt != 2 || len(rec.History) != 1 || rec.History[0].Error != "boom" {
			t.Errorf("%s: %+v, %v", r.Job, rec, err)
		}
		if c := claimOne(t, store, r); c.Status != idempotency.StatusBusy {
			t.Errorf("%s: a moved claim answers %v", r.Job, c.Status)
		}
		if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: held[r.Job]}})[0]; err != nil {
			t.Errorf("%s: %v", r.Job, err)
		}
	}
}

func expireUntilGone(t *testing.T, store idempotency.Store, key idempotency.Key) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		if _, err := store.Expire(t.Context(), 1); err != nil && !errors.Is(err, idempotency.ErrUnavailable) {
			t.Fatal(err)
		}
		_, err := store.Get(t.Context(), key)
		if errors.Is(err, idempotency.ErrNotFound) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("key %q is still there: %v", key.Value, err)
		}
	}
}

// Claims race over generations that are opened and dropped all the time, by several processes: no key is ever held twice, tokens and attempts
// only rise, and every key is completed once.
func TestClaimsRaceOverGenerations(t *testing.T) {
	t.Parallel()
	store, pool, schema := open(t, pgdb.Config{}, hasty)
	second, err := postgres.New(pool, postgres.Config{Schema: schema, Generation: hasty.Generation, Keep: hasty.Keep})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	race := newRace(60)
	stop := make(chan struct{})
	var keepers, workers sync.WaitGroup
	for _, s := range []idempotency.Store{store, second} {
		keepers.Go(func() { keepExpiring(t, s, stop) })
		for range 4 {
			workers.Go(func() { race.work(t, s) })
		}
	}
	workers.Wait()
	close(stop)
	keepers.Wait()
	race.check(t, store)
	var newest int
	if err := pool.QueryRow(t.Context(), "SELECT max(gen) FROM "+schema+".generations").Scan(&newest); err != nil || newest < 3 {
		t.Errorf("%d generations, %v: the test has shown nothing", newest, err)
	}
}

func keepExpiring(t *testing.T, s idempotency.Store, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := s.Expire(t.Context(), 1); err != nil && !errors.Is(err, idempotency.ErrUnavailable) {
			t.Errorf("expire: %v", err)
		}
	}
}

// race is a set of keys that workers claim, fail and complete.
type race struct {
	keys []raceKey
}

type raceKey struct {
	request   idempotency.Request
	held      atomic.Int32
	token     atomic.Int64
	attempt   atomic.Int64
	completed atomic.Int32
}

func newRace(n int) *race {
	r := &race{keys: make([]raceKey, n)}
	for i := range r.keys {
		q := request(fmt.Sprintf("job %d", i))
		if i%3 == 0 {
			q.Key.Value = fmt.Sprintf("key %d", i)
		}
		r.keys[i].request = q
	}
	return r
}

// work goes through the keys until all are completed.
func (r *race) work(t *testing.T, s idempotency.Store) {
	for end := time.Now().Add(60 * time.Second); ; {
		left := false
		for _, i := range rand.Perm(len(r.keys)) {
			k := &r.keys[i]
			if k.completed.Load() == 0 {
				left = true
				k.try(t, s)
			}
		}
		if !left {
			return
		}
		if time.Now().After(end) {
			t.Error("not all keys were completed in time")
			return
		}
	}
}

func (k *raceKey) try(t *testing.T, s idempotency.Store) {
	c := s.Claim(t.Context(), []idempotency.Request{k.request})[0]
	switch {
	case errors.Is(c.Err, idempotency.ErrUnavailable) || c.Status == idempotency.StatusBusy || c.Status == idempotency.StatusCompleted:
		return
	case c.Status != idempotency.StatusAcquired:
		t.Errorf("claim of %q: %v, %v", k.request.Job, c.Status, c.Err)
		return
	}
	if n := k.held.Add(1); n != 1 {
		t.Errorf("%q is held %d times", k.request.Job, n)
	}
	if last := k.token.Swap(c.Token); last >= c.Token {
		t.Errorf("%q: token %d after %d", k.request.Job, c.Token, last)
	}
	if last := k.attempt.Swap(int64(c.Attempt)); last >= int64(c.Attempt) {
		t.Errorf("%q: attempt %d after %d", k.request.Job, c.Attempt, last)
	}
	h := heldOf(k.request, c)
	k.held.Add(-1)
	if c.Attempt < 3 {
		k.end(t, func() error { return s.Fail(t.Context(), []idempotency.Failure{{Handle: h}})[0] })
		return
	}
	if k.end(t, func() error { return s.Complete(t.Context(), []idempotency.Completion{{Handle: h}})[0] }) {
		k.completed.Add(1)
	}
}

// end repeats a write on the claim until its answer is known.
func (k *raceKey) end(t *testing.T, write func() error) bool {
	for unknown := false; ; {
		err := write()
		switch {
		case err == nil:
			return true
		case unknown && errors.Is(err, idempotency.ErrClaimLost):
			return false // an earlier one was stored
		case !errors.Is(err, idempotency.ErrUnavailable):
			t.Errorf("end of %q: %v", k.request.Job, err)
			return false
		}
		unknown = true
	}
}

func (r *race) check(t *testing.T, s idempotency.Store) {
	t.Helper()
	for i := range r.keys {
		k := &r.keys[i]
		if rec, err := s.Get(t.Context(), k.request.Key); err != nil || rec.State != idempotency.StatusCompleted || k.completed.Load() != 1 {
			t.Errorf("%q: %v, %v, completed %d times", k.request.Job, rec.State, err, k.completed.Load())
		}
	}
}
