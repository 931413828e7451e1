package worker_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/worker"
)

// mute is a store that does not hear heartbeats while it is told not to.
type mute struct {
	*postgres.Store
	deaf atomic.Bool
}

func (m *mute) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	if !m.deaf.Load() {
		return m.Store.Extend(ctx, exts)
	}
	errs := make([]error, len(exts))
	for i := range errs {
		errs[i] = idempotency.ErrUnavailable
	}
	return errs
}

// A handler whose claim was taken over while it ran has done nothing, although it returned nil.
func TestHandlerTxOfALostClaim(t *testing.T) {
	t.Parallel()
	r := openTxRig(t)
	store := &mute{Store: r.store}
	store.deaf.Store(true)
	written, goOn := make(chan idempotency.Fingerprint), make(chan struct{})
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		_, err := r.write(ctx, job)
		written <- idempotency.FingerprintOf(job.Payload)
		<-goOn
		return err
	})
	r.start(worker.Config{Registry: registry, Store: store, Lease: time.Second})
	r.enqueue("a")
	payload := <-written
	key := idempotency.Key{Scope: "job", Value: "a"}
	var other idempotency.Claim
	r.soon("the claim has run out", func() bool {
		other = r.store.Claim(t.Context(), []idempotency.Request{{
			Key: key, Job: "a", Fingerprint: payload, Owner: "other", Lease: time.Minute,
		}})[0]
		return other.Status == idempotency.StatusAcquired
	})
	close(goOn)
	if s := r.outcomes("a", 1); s[0].Outcome != worker.OutcomeInterrupted || s[0].Settlement != worker.SettlementLeave || !errors.Is(s[0].Err, worker.ErrClaimLost) {
		t.Errorf("settled: %s by %s, %v", s[0].Outcome, s[0].Settlement, s[0].Err)
	}
	r.wrote("a", idempotency.StatusAcquired)
	r.idle()
}

// A stop interrupts the handler: nothing is stored, nothing is spent, and the next worker does the job.
func TestHandlerTxInterruptedByAStop(t *testing.T) {
	t.Parallel()
	written := make(chan struct{})
	registry := worker.NewRegistry()
	r := openTxRig(t)
	var once sync.Once
	work(registry, "job", worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		_, err := r.write(ctx, job)
		wait := false
		once.Do(func() { wait = true; close(written) })
		if wait {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	})
	r.start(worker.Config{Registry: registry})
	r.enqueue("a")
	<-written
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if s := r.outcomes("a", 1); s[0].Outcome != worker.OutcomeInterrupted {
		t.Errorf("settled: %s, %v", s[0].Outcome, s[0].Err)
	}
	r.wrote("a", 0)
	r.start(worker.Config{Registry: registry})
	r.outcomes("a", 2)
	r.wrote("a", idempotency.StatusCompleted, 1)
}

// A handler that was abandoned and returns nil in the end has done nothing: its transaction was rolled back long before.
func TestHandlerTxOfAnAbandonedHandler(t *testing.T) {
	t.Parallel()
	r := openTxRig(t)
	goOn, returned := make(chan struct{}), make(chan error, 1)
	registry := worker.NewRegistry()
	kind := worker.KindConfig{Timeout: 2 * time.Second, TimeoutGrace: 100 * time.Millisecond, MaxAttempts: 2, Backoff: every(t, time.Second)}
	var once sync.Once
	work(registry, "job", kind, func(ctx context.Context, job *worker.Job) error {
		tx, err := r.write(ctx, job)
		once.Do(func() {
			<-goOn
			_, late := tx.Exec(context.WithoutCancel(ctx), "SELECT 1")
			returned <- late
		})
		return err
	})
	r.start(worker.Config{Registry: registry})
	r.enqueue("a")
	r.outcomes("a", 1)
	r.wrote("a", 0)
	r.idle()
	close(goOn)
	if err := <-returned; err == nil {
		t.Error("the abandoned handler could still use its transaction")
	}
	if s := r.outcomes("a", 2); s[1].Outcome != worker.OutcomeSucceeded || s[1].Job.Attempt != 2 {
		t.Errorf("the second attempt: %s, %v", s[1].Outcome, s[1].Err)
	}
	r.wrote("a", idempotency.StatusCompleted, 2)
}

// holdCommits makes every commit of an effect wait on the server until the returned function lets it go on.
func (r *txRig) holdCommits() (letGo func()) {
	r.t.Helper()
	wait := r.schema + ".wait"
	r.exec("CREATE FUNCTION " + wait + "() RETURNS trigger LANGUAGE plpgsql AS " +
		"$$ BEGIN PERFORM pg_advisory_xact_lock_shared(hashtext('" + r.schema + "')); RETURN NULL; END $$")
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

// committing waits until a commit is held on the server.
func (r *txRig) committing() (pid int) {
	r.t.Helper()
	r.soon("a commit waits on the server", func() bool {
		return r.direct.QueryRow(r.t.Context(), "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "+
			"AND objid = hashtext($1)::bigint::bit(32)::bigint::oid", r.schema).Scan(&pid) == nil
	})
	return pid
}

// The network goes away between the commit and its answer. The worker keeps asking, and then knows.
func TestHandlerTxWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := joins(t, worker.KindConfig{}, func(ctx context.Context, r *txRig, job *worker.Job) error {
				_, err := r.write(ctx, job)
				return err
			})
			letGo := r.holdCommits()
			r.enqueue("a")
			pid := r.committing()
			r.proxy.Cut()
			if !committed {
				r.exec("SELECT pg_terminate_backend($1)", pid)
			}
			letGo()
			r.soon("the server has decided", func() bool {
				var n int
				if err := r.direct.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n == 0
			})
			r.proxy.Restore()
			s := r.outcomes("a", 1)
			if committed {
				if s[0].Outcome != worker.OutcomeSucceeded || s[0].SettleErr != nil {
					t.Errorf("settled: %s, %v, %v", s[0].Outcome, s[0].Err, s[0].SettleErr)
				}
			} else {
				// The store was away: nothing is spent.
				if s[0].Outcome != worker.OutcomeDeferred || s[0].Reason != worker.ReasonStoreUnavailable {
					t.Errorf("settled: %s for %q, %v", s[0].Outcome, s[0].Reason, s[0].Err)
				}
				r.outcomes("a", 2)
			}
			r.wrote("a", idempotency.StatusCompleted, 1)
			r.idle()
		})
	}
}

// A stop that comes while nobody knows leaves the job alone. What the next worker finds is the truth.
func TestHandlerTxLeftInDoubtByAStop(t *testing.T) {
	t.Parallel()
	r := openTxRig(t)
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		_, err := r.write(ctx, job)
		return err
	})
	r.start(worker.Config{Registry: registry, Lease: time.Second, StopGrace: new(time.Duration(0)), StopHard: new(100 * time.Millisecond)})
	letGo := r.holdCommits()
	r.enqueue("a")
	r.committing()
	r.proxy.Cut()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	letGo()
	if s := r.outcomes("a", 1); s[0].Settlement != worker.SettlementLeave {
		t.Errorf("settled by %s: %v", s[0].Settlement, s[0].Err)
	}
	r.proxy.Restore()
	r.start(worker.Config{Registry: registry, Lease: time.Second})
	r.soon("the job is told to be done", func() bool {
		s := r.outcomes("a", 2)
		return s[len(s)-1].Outcome == worker.OutcomeDuplicate
	})
	r.wrote("a", idempotency.StatusCompleted, 1)
}

// PostgreSQL goes away between the claim and the first statement: the job was not tried and spends nothing.
func TestHandlerTxWithoutAStore(t *testing.T) {
	t.Parallel()
	first := true
	r := joins(t, worker.KindConfig{MaxAttempts: 1}, func(ctx context.Context, r *txRig, job *worker.Job) error {
		if first {
			r.proxy.Cut()
			defer r.proxy.Restore() //nolint:contextcheck // it knows none
		}
		first = false
		_, err := r.write(ctx, job)
		return err
	})
	r.enqueue("a")
	s := r.outcomes("a", 2)
	if s[0].Outcome != worker.OutcomeDeferred || s[0].Reason != worker.ReasonStoreUnavailable || s[1].Outcome != worker.OutcomeSucceeded || s[1].Job.Attempt != 1 {
		t.Errorf("settled: %s for %q as attempt %d, then %s", s[0].Outcome, s[0].Reason, s[1].Job.Attempt, s[1].Outcome)
	}
	r.wrote("a", idempotency.StatusCompleted, 1)
	r.idle()
}

// A handler that overlooks that it got no transaction has not succeeded.
func TestHandlerTxMissedIsNoSuccess(t *testing.T) {
	t.Parallel()
	first := true
	r := joins(t, worker.KindConfig{}, func(ctx context.Context, r *txRig, job *worker.Job) error {
		if first {
			first = false
			gone, cancel := context.WithCancel(ctx)
			cancel()
			_, _ = r.write(gone, job)
			return nil
		}
		_, err := r.write(ctx, job)
		return err
	})
	r.enqueue("a")
	if s := r.outcomes("a", 2); s[0].Outcome != worker.OutcomeFailed || s[1].Outcome != worker.OutcomeSucceeded {
		t.Errorf("settled: %s, %v, then %s", s[0].Outcome, s[0].Err, s[1].Outcome)
	}
	r.wrote("a", idempotency.StatusCompleted, 2)
}

// Twenty handlers at once share the one connection that a pool of three has for them, for longer than a lease lasts. Those without one wait, and
// no claim runs out.
func TestHandlerTxMoreThanConnections(t *testing.T) {
	t.Parallel()
	r := openTxRigOf(t, 3)
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		tx, err := r.write(ctx, job)
		if err == nil {
			_, err = tx.Exec(ctx, "SELECT pg_sleep(0.2)")
		}
		return err
	})
	ids := make([]string, 20)
	r.start(worker.Config{Registry: registry, Lease: 3 * time.Second, Concurrency: len(ids)})
	for i := range ids {
		ids[i] = "many-" + strconv.Itoa(i)
		r.enqueue(ids[i])
	}
	for _, id := range ids {
		if s := r.outcomes(id, 1); s[0].Outcome != worker.OutcomeSucceeded {
			t.Errorf("%s: %s, %v", id, s[0].Outcome, s[0].Err)
		}
		r.wrote(id, idempotency.StatusCompleted, 1)
	}
	r.idle()
}
