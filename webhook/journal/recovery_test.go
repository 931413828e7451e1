package journal_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/journal/postgres"
	"github.com/caisson-go/caisson/worker"
)

// onStores runs a test on a rig with each journal.
func onStores(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newRig(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		pool, schema := testserver.Schema(t)
		store, err := postgres.New(pool, postgres.Config{Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t)
		r.journal = store
		test(t, r)
	})
}

func (r *rig) recovery(change func(*journal.RecoveryConfig)) *journal.Recovery {
	r.t.Helper()
	cfg := journal.RecoveryConfig{Store: r.journal, Client: r.client, DeadLetters: r.dead, Broker: r.broker, Claims: r.claims, Batch: 7}
	if change != nil {
		change(&cfg)
	}
	recovery, err := journal.NewRecovery(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return recovery
}

// recorded starts a worker whose attempts are logged. stop writes all of them.
func (r *rig) recorded(also ...worker.Observer) (stop func()) {
	r.t.Helper()
	recorder, stopRecorder := run(r.t, journal.RecorderConfig{Store: r.journal, Interval: time.Millisecond})
	stopWorker := r.start(recorder.Observe, also...)
	return func() { stopWorker(); stopRecorder() }
}

func TestResend(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		shop := r.add("shop", func(e *webhook.Endpoint) { e.Events = []string{"other.*"} })
		r.add("all", nil)
		stop := r.recorded()
		defer stop()
		r.publish(r.publisher(nil), webhook.Event{ID: "evt_1", Type: "t", Body: []byte(`{"a":1}`), ContentType: "text/x"}, 1)
		r.idle()
		recovery := r.recovery(nil)
		var jobs []string
		for i := range 3 {
			job, err := recovery.Resend(t.Context(), shop, "evt_1")
			if err != nil || slices.Contains(jobs, job) {
				t.Fatalf("resend: %q, %v", job, err)
			}
			jobs = append(jobs, job)
			r.idle()
			if got := r.seen.took("shop"); len(got) != i+1 || got[i] != "evt_1" {
				t.Errorf("after %d resends it took %v", i+1, got)
			}
		}
		r.once([]string{"all"}, "evt_1")
		if _, err := recovery.Resend(t.Context(), shop, "evt_2"); !errors.Is(err, webhook.ErrNoEvent) {
			t.Errorf("an event that is not kept: %v", err)
		}
		shop.Tenant = "other"
		if _, err := recovery.Resend(t.Context(), shop, "evt_1"); !errors.Is(err, webhook.ErrNoEvent) {
			t.Errorf("another tenant's event: %v", err)
		}
	})
}

func TestRecoverSince(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		shop := r.add("shop", func(e *webhook.Endpoint) { e.Events = []string{"a.*"} })
		r.add("other", nil)
		var sick atomic.Bool
		sick.Store(true)
		r.seen.answers(func(endpoint, event string) int {
			if sick.Load() && endpoint == "shop" && strings.HasPrefix(event, "dead") {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
		p := r.publisher(nil)
		stop := r.recorded()
		r.publish(p, webhook.Event{ID: "dead_before", Type: "a.b"}, 2)
		r.publish(p, webhook.Event{ID: "fine_before", Type: "a.b"}, 2)
		r.idle()
		since := time.Now()
		var good, dead, missed []string
		for i := range 10 {
			good = append(good, r.publish(p, webhook.Event{ID: fmt.Sprint("good_", i), Type: "a.b"}, 2))
			dead = append(dead, r.publish(p, webhook.Event{ID: fmt.Sprint("dead_", i), Type: "a.b"}, 2))
		}
		r.publish(p, webhook.Event{ID: "not_wanted", Type: "b"}, 1)
		r.idle()
		stop()
		// The endpoint was added late, or the broker lost them: events without a delivery.
		for i := range 20 {
			e, err := webhook.Event{ID: fmt.Sprint("missed_", i), Type: "a.b", Body: []byte("{}")}.Checked()
			if err == nil {
				err = r.journal.PutEvent(t.Context(), e)
			}
			if err != nil {
				t.Fatal(err)
			}
			missed = append(missed, e.ID)
		}
		purged := dlq.EntryID(webhook.Event{ID: dead[9]}.JobID("shop"), 0)
		if n, err := r.dead.Purge(t.Context(), dlq.Filter{IDs: []string{purged}}); n != 1 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		dead = dead[:9]

		sick.Store(false)
		recovery := r.recovery(func(c *journal.RecoveryConfig) { c.Audit, c.Actor = r.dead, "ann@host" })
		got, err := recovery.RecoverSince(t.Context(), shop, since)
		audits, _, auditErr := r.dead.Audits(t.Context(), "", 10)
		if auditErr != nil || len(audits) != 1 || audits[0].Done != 29 || audits[0].State != audit.StateDone || audits[0].Actor != "ann@host" ||
			!strings.Contains(audits[0].Filter, "endpoint shop") {
			t.Errorf("audit %+v, %v", audits, auditErr)
		}
		if err != nil || got.Events != 40 || got.Missed != 20 || got.Replay.Replayed != 9 {
			t.Errorf("%+v, %v: want 40 events, 20 missed and 9 replayed", got, err)
		}
		// Once more before a worker has seen any of it.
		if got, err = recovery.RecoverSince(t.Context(), shop, since); err != nil || got.Missed != 20 || got.Replay.Replayed != 0 {
			t.Errorf("again at once: %+v, %v", got, err)
		}
		stop = r.recorded()
		r.idle()
		stop()
		r.once([]string{"shop"}, slices.Concat(good, dead, missed, []string{"fine_before"})...)
		if got, err = recovery.RecoverSince(t.Context(), shop, since); err != nil || got.Events != 40 || got.Missed != 0 || got.Replay.Replayed != 0 {
			t.Errorf("again: %+v, %v", got, err)
		}
		if left := r.letters(); len(left) != 1 || left[0].Job != "shop:dead_before" {
			t.Errorf("dead letters that are left: %+v", left)
		}
		if n := len(r.seen.took("other")); n != 23 {
			t.Errorf("the other endpoint took %d events, want the 23 that were published", n)
		}
	})
}

// What the broker does not take is enqueued by the next call.
func TestRecoverFails(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		shop := r.add("shop", nil)
		for i := range 20 {
			e, err := webhook.Event{ID: fmt.Sprint("missed_", i), Type: "t"}.Checked()
			if err == nil {
				err = r.journal.PutEvent(t.Context(), e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("broken")
		r.broker.SetPlan(queuetest.When(queuetest.OpPublish, func(p queuetest.Point) bool { return p.N > 10 }, queuetest.Fault{Before: broken}))
		recovery := r.recovery(nil)
		got, err := recovery.RecoverSince(t.Context(), shop, time.Time{})
		if !errors.Is(err, broken) || got.Missed != 10 {
			t.Errorf("%+v, %v: want 10 and an error", got, err)
		}
		r.broker.SetPlan(nil)
		if got, err = recovery.RecoverSince(t.Context(), shop, time.Time{}); err != nil || got.Missed != 20 {
			t.Errorf("%+v, %v: want all 20", got, err)
		}
		r.start(nil)
		r.idle()
		if n := len(r.seen.took("shop")); n != 20 {
			t.Errorf("it took %d, want each of 20 once", n)
		}
	})
}

// The missed events of an ordered endpoint go to the end of its line, in their order.
func TestRecoverOrdered(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		line := r.add("line", ordered)
		var want []string
		for i := range 15 {
			e, err := webhook.Event{ID: fmt.Sprintf("evt_%02d", i), Type: "t"}.Checked()
			if err == nil {
				err = r.journal.PutEvent(t.Context(), e)
			}
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, e.ID)
		}
		if _, err := r.recovery(nil).RecoverSince(t.Context(), line, time.Time{}); err == nil {
			t.Error("an endpoint that asks for order gets none, in silence")
		}
		o := r.ordering(&lines{}, nil)
		got, err := r.recovery(func(cfg *journal.RecoveryConfig) { cfg.Ordering, cfg.Rate = o, 200 }).RecoverSince(t.Context(), line, time.Time{})
		if err != nil || got.Missed != 15 {
			t.Errorf("%+v, %v: want 15", got, err)
		}
		r.startOrdered(o)
		r.await("an empty line", r.linesEmpty)
		if took := r.seen.took("line"); !slices.Equal(took, want) {
			t.Errorf("it took %v", took)
		}
	})
}

func TestRecoveryRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, cfg := range []journal.RecoveryConfig{
		{},
		{Store: r.journal},
		{Client: r.client},
		{Store: r.journal, Client: r.client, DeadLetters: r.dead},
		{Store: r.journal, Client: r.client, Rate: -1},
		{Store: r.journal, Client: r.client, Batch: -1},
	} {
		if _, err := journal.NewRecovery(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
