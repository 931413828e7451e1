package worker_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/worker"
)

// A first attempt that writes and then ends otherwise than well leaves nothing. The second one writes the only row.
func TestHandlerTxKeepsOnlySuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  worker.KindConfig
		first func(ctx context.Context, r *txRig, job *worker.Job) error
		want  worker.Outcome
		text  string // in its error
	}{
		"error":  {worker.KindConfig{}, func(context.Context, *txRig, *worker.Job) error { return errBoom }, worker.OutcomeFailed, "boom"},
		"panic":  {worker.KindConfig{}, func(context.Context, *txRig, *worker.Job) error { panic("ouch") }, worker.OutcomeFailed, "ouch"},
		"goexit": {worker.KindConfig{}, func(context.Context, *txRig, *worker.Job) error { runtime.Goexit(); return nil }, worker.OutcomeFailed, "Goexit"},
		"retry after": {worker.KindConfig{}, func(context.Context, *txRig, *worker.Job) error {
			return worker.RetryAfter(time.Millisecond, errBoom)
		}, worker.OutcomeFailed, "boom"},
		"snooze": {worker.KindConfig{}, func(context.Context, *txRig, *worker.Job) error { return worker.Snooze(time.Second, "later") }, worker.OutcomeDeferred, "later"},
		"timeout": {worker.KindConfig{Timeout: 2 * time.Second}, func(ctx context.Context, _ *txRig, _ *worker.Job) error {
			<-ctx.Done()
			return ctx.Err()
		}, worker.OutcomeFailed, "deadline"},
		"timeout in a statement": {worker.KindConfig{Timeout: 2 * time.Second}, func(ctx context.Context, _ *txRig, _ *worker.Job) error {
			return sleepIn(ctx)
		}, worker.OutcomeFailed, "timeout"},
		"deaf statement": {worker.KindConfig{Timeout: 2 * time.Second, TimeoutGrace: 100 * time.Millisecond}, func(ctx context.Context, _ *txRig, _ *worker.Job) error {
			return sleepIn(context.WithoutCancel(ctx)) // abandoned, and ended by the rollback
		}, worker.OutcomeFailed, "ignored its context"},
		"swallowed error": {worker.KindConfig{}, func(ctx context.Context, _ *txRig, _ *worker.Job) error {
			tx, err := postgres.TxFrom(ctx)
			if err == nil {
				_, _ = tx.Exec(ctx, "SELECT 1/0")
			}
			return err
		}, worker.OutcomeFailed, "22012"},
		"rollback": {worker.KindConfig{}, func(ctx context.Context, _ *txRig, _ *worker.Job) error {
			tx, err := postgres.TxFrom(ctx)
			return errors.Join(err, tx.Rollback(ctx))
		}, worker.OutcomeFailed, "rolled it back"},
		"conflict at the commit": {worker.KindConfig{}, func(ctx context.Context, r *txRig, _ *worker.Job) error {
			tx, err := postgres.TxFrom(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, "INSERT INTO "+r.schema+".child VALUES (1)") // whose parent is missing
			}
			return err
		}, worker.OutcomeFailed, "23503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := true
			r := openTxRig(t)
			r.exec("CREATE TABLE " + r.schema + ".parent (id int PRIMARY KEY)")
			r.exec("CREATE TABLE " + r.schema + ".child (id int REFERENCES " + r.schema + ".parent DEFERRABLE INITIALLY DEFERRED)")
			c.kind.Backoff = every(t, 10*time.Millisecond)
			registry := worker.NewRegistry()
			work(registry, "job", c.kind, func(ctx context.Context, job *worker.Job) error {
				if _, err := r.write(ctx, job); err != nil || !first {
					return err
				}
				first = false
				return c.first(ctx, r, job)
			})
			r.start(worker.Config{Registry: registry})
			r.enqueue("a")
			s := r.outcomes("a", 2)
			if s[0].Outcome != c.want || !strings.Contains(s[0].Err.Error(), c.text) {
				t.Errorf("the first attempt: %s, %v; want %s with %q", s[0].Outcome, s[0].Err, c.want, c.text)
			}
			if s[1].Outcome != worker.OutcomeSucceeded {
				t.Errorf("the second attempt: %s, %v", s[1].Outcome, s[1].Err)
			}
			r.wrote("a", idempotency.StatusCompleted, s[1].Job.Attempt)
			r.idle()
		})
	}
}

func sleepIn(ctx context.Context) error {
	tx, err := postgres.TxFrom(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT pg_sleep(60)")
	}
	return err
}

// A handler that gives up for good leaves a dead letter and no row.
func TestHandlerTxOfADeadJob(t *testing.T) {
	t.Parallel()
	r := joins(t, worker.KindConfig{}, func(ctx context.Context, r *txRig, job *worker.Job) error {
		if _, err := r.write(ctx, job); err != nil {
			return err
		}
		return worker.Cancel(errBoom)
	})
	r.enqueue("a")
	if s := r.outcomes("a", 1); s[0].Settlement != worker.SettlementDeadLetter {
		t.Errorf("settled by %s: %v", s[0].Settlement, s[0].Err)
	}
	r.wrote("a", 0)
	if _, err := r.dead.Get(t.Context(), dlq.EntryID("a", 0)); err != nil {
		t.Error(err)
	}
}

// One transaction an attempt, with its result, around all middleware, and a copy of the job is told the result.
func TestHandlerTxIsOneAroundAllMiddleware(t *testing.T) {
	t.Parallel()
	r := openTxRig(t)
	registry := worker.NewRegistry()
	var late context.Context
	registry.Use(func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, job *worker.Job) error {
			late = ctx //nolint:fatcontext // to be misused below
			err := next(ctx, job)
			if n := r.count(ctx); n != 0 {
				t.Errorf("%d rows are stored before the outermost middleware has returned", n)
			}
			_, also := r.write(ctx, job)
			return errors.Join(err, also)
		}
	})
	work(registry, "job", worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		first, err := r.write(ctx, job)
		if err != nil {
			return err
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		second, err := postgres.TxFrom(inner)
		if first != second {
			t.Error("two calls gave two transactions")
		}
		job.SetResult([]byte("result"))
		return err
	})
	r.start(worker.Config{Registry: registry})
	r.enqueue("a")
	r.outcomes("a", 1)
	r.enqueue("a")
	s := r.outcomes("a", 2)
	if s[0].Outcome != worker.OutcomeSucceeded || s[0].SettleErr != nil || s[1].Outcome != worker.OutcomeDuplicate || string(s[1].Result.Data) != "result" {
		t.Errorf("settled: %+v, %+v", s[0], s[1])
	}
	r.wrote("a", idempotency.StatusCompleted, 1, 1)
	if _, err := postgres.TxFrom(late); !errors.Is(err, idempotency.ErrNoTx) {
		t.Errorf("after the handler: %v", err)
	}
}

func (r *txRig) count(ctx context.Context) (n int) {
	r.t.Helper()
	if err := r.direct.QueryRow(ctx, "SELECT count(*) FROM "+r.effects).Scan(&n); err != nil {
		r.t.Error(err)
	}
	return n
}

// Where there is no transaction to take, the handler is told why.
func TestHandlerTxThatCannotBe(t *testing.T) {
	t.Parallel()
	rig := memoryRig(t)
	t.Cleanup(func() { _ = rig.broker.Close() })
	for name, c := range map[string]struct {
		store idempotency.Store
		keyed *bool
		want  string
	}{
		"no store":      {nil, nil, "no idempotency store"},
		"unkeyed kind":  {rig.claims, new(false), "takes no claim"},
		"another store": {rig.claims, new(true), "do not join"},
	} {
		told := make(chan error, 1)
		registry := worker.NewRegistry()
		work(registry, "job", worker.KindConfig{Keyed: c.keyed}, func(ctx context.Context, _ *worker.Job) error {
			_, err := postgres.TxFrom(ctx)
			told <- err
			return nil
		})
		w, err := worker.New(worker.Config{Broker: rig.broker, Registry: registry, Store: c.store, DeadLetters: rig.dead})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		if _, err := rig.client(t).Enqueue(ctx, worker.NewJob{Kind: "job"}); err != nil {
			t.Fatal(err)
		}
		if err := <-told; !errors.Is(err, idempotency.ErrNoTx) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A crash between the commit and the ack delivers the job again, which runs nothing.
func TestHandlerTxIsCommittedBeforeTheAck(t *testing.T) {
	t.Parallel()
	r := openTxRig(t)
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		_, err := r.write(ctx, job)
		return err
	})
	broker := queuetest.NewFaultBroker(r.broker, queuetest.Script(queuetest.OpSettle, queuetest.Fault{Expire: true}))
	r.start(worker.Config{Registry: registry, Broker: broker})
	r.enqueue("a")
	if s := r.outcomes("a", 2); s[0].Outcome != worker.OutcomeSucceeded || s[0].SettleErr == nil || s[1].Outcome != worker.OutcomeDuplicate {
		t.Errorf("settled: %+v, %+v", s[0], s[1])
	}
	r.wrote("a", idempotency.StatusCompleted, 1)
}
