package endpoints_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/postgres"
	"github.com/caisson-go/caisson/worker"
)

// remote is a plant whose registry is in PostgreSQL behind a proxy, and an operator who goes another way.
type remote struct {
	*plant
	proxy    *testserver.Proxy
	direct   *pgxpool.Pool
	schema   string
	store    *tallied
	operator *endpoints.Registry
	disabled atomic.Int64 // times that the disabler told
}

// tallied is a store that says when a report begins, to whoever waits for one.
type tallied struct {
	faulty
	begun chan struct{}
}

func (s *tallied) Report(ctx context.Context, deltas []endpoints.Delta) ([]endpoints.Health, error) {
	select {
	case s.begun <- struct{}{}:
	default:
	}
	return s.Store.Report(ctx, deltas)
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{}
	r.direct, r.schema = testserver.Schema(t)
	r.proxy = testserver.StartProxy(t, fmt.Sprintf("%s:%d", r.direct.Config().ConnConfig.Host, r.direct.Config().ConnConfig.Port))
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: r.proxy.URL(testserver.Postgres(t))})
	check(t, err)
	t.Cleanup(pool.Close)
	r.store = &tallied{faulty: faulty{Store: postgres.New(pool, postgres.Config{Schema: r.schema})}, begun: make(chan struct{})}
	r.plant = newPlantOn(t, r.store, quick, func(cfg *endpoints.AutoDisablerConfig) {
		cfg.Window = time.Nanosecond
		cfg.OnDisabled = func(webhook.Endpoint) { r.disabled.Add(1) }
	})
	r.operator = registry(t, postgres.New(r.direct, postgres.Config{Schema: r.schema}), r.keys)
	add(t, r.operator, endpoint("dead"))
	r.seen(webhook.StateActive, "")
	return r
}

// failing tells the disabler of seven hours of failures, and of more until the test ends.
func (r *remote) failing() {
	saw := func(event string, at time.Time) {
		r.disabler.Observe(webhook.Attempt{Endpoint: "dead", Event: event, At: at, Response: webhook.Response{Status: http.StatusInternalServerError}})
	}
	for ago := 7 * time.Hour; ago > 0; ago -= 10 * time.Minute {
		saw(ago.String(), time.Now().Add(-ago))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(quick)
		defer tick.Stop()
		for r.t.Context().Err() == nil {
			select {
			case <-r.t.Context().Done():
			case now := <-tick.C:
				saw("more", now)
			}
		}
	}()
	r.t.Cleanup(func() { <-done })
}

// delivers fails the test unless deliveries go on.
func (r *remote) delivers() {
	r.t.Helper()
	for i := range 3 {
		r.deliver(fmt.Sprintf("evt_%d_%d", r.calls.Load(), i), ended(worker.SettlementAck))
	}
}

// hold has the next change of an endpoint wait, in the middle of its transaction or in the commit, and returns when it does. Then release lets it
// go on.
func (r *remote) hold(constraint string) (reached, release func()) {
	r.t.Helper()
	ctx, key := r.t.Context(), rand.Int32() //nolint:gosec // any
	held, err := r.direct.Acquire(ctx)
	check(r.t, err)
	_, err = held.Exec(ctx, fmt.Sprintf(`SELECT pg_advisory_lock(%[2]d);
CREATE FUNCTION %[1]s.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(%[2]d); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON %[1]s.webhook_endpoints DEFERRABLE INITIALLY %[3]s FOR EACH ROW EXECUTE FUNCTION %[1]s.hold()`,
		r.schema, key, constraint))
	check(r.t, err)
	reached = func() {
		r.t.Helper()
		for n, limit := 0, time.Now().Add(2*time.Minute); n == 0; {
			const ask = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::bigint AND NOT granted`
			check(r.t, r.direct.QueryRow(ctx, ask, int64(key)).Scan(&n))
			if time.Now().After(limit) {
				r.t.Fatal("the endpoint is not about to be disabled")
			}
		}
	}
	return reached, func() {
		r.t.Helper()
		_, err := held.Exec(ctx, fmt.Sprintf(`SELECT pg_advisory_unlock(%d)`, key))
		check(r.t, err)
		held.Release()
	}
}

// wantOnce fails the test unless the endpoint was disabled once, by the disabler of the plant or by another, and stays so.
func (r *remote) wantOnce(byOurs int64) {
	r.t.Helper()
	r.seen(webhook.StateDisabled, webhook.ReasonFailing)
	before, err := r.operator.Get(r.t.Context(), "dead")
	check(r.t, err)
	for range byOurs {
		r.await(func(s worker.Settled) bool { return s.Kind == endpoints.KindDisabled })
	}
	for range 3 { // whole steps
		<-r.store.begun
	}
	after, err := r.operator.Get(r.t.Context(), "dead")
	check(r.t, err)
	if after.Revision != before.Revision || after.Reason != webhook.ReasonFailing || r.disabled.Load() != byOurs || int64(len(r.notices)) != byOurs {
		r.t.Errorf("revision %d, then %d with reason %s; disabled %d times, %d notices, want %d",
			before.Revision, after.Revision, after.Reason, r.disabled.Load(), len(r.notices), byOurs)
	}
}

// TestAutoDisablerThroughFaults: whenever its connections are cut or swallow everything, what it was about to do is done once, and deliveries go on.
func TestAutoDisablerThroughFaults(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(r *remote){
		"cut while it tallies": func(r *remote) {
			r.proxy.Cut()
			r.failing()
			<-r.store.begun
			r.delivers()
		},
		"swallowed while it tallies": func(r *remote) {
			r.proxy.Blackhole(true)
			r.failing()
			<-r.store.begun
			r.delivers()
			r.proxy.Cut()
		},
		"late while it tallies": func(r *remote) {
			r.proxy.Blackhole(true)
			r.failing()
			<-r.store.begun
			r.delivers()
		},
		"cut while it disables": func(r *remote) {
			reached, release := r.hold("IMMEDIATE")
			r.failing()
			reached()
			r.proxy.Cut()
			release()
			r.delivers()
		},
		"cut before it hears that it has": func(r *remote) {
			reached, release := r.hold("DEFERRED")
			r.failing()
			reached()
			r.proxy.Cut()
			release()
			r.delivers()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			through(r)
			r.proxy.Blackhole(false)
			r.proxy.Restore()
			r.wantOnce(1)
		})
	}
}

// TestOthersDisableMeanwhile: a process whose network swallows everything in the middle of a change keeps no other from changing endpoints for long.
func TestOthersDisableMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	reached, release := r.hold("IMMEDIATE")
	r.failing()
	reached()
	r.proxy.Blackhole(true)
	release()
	r.delivers()
	if _, changed, err := r.operator.DisableAs(t.Context(), "dead", webhook.ReasonFailing); err != nil || !changed {
		t.Fatalf("changed: %v, %v", changed, err)
	}
	r.proxy.Cut()
	r.proxy.Blackhole(false)
	r.proxy.Restore()
	r.wantOnce(0)
}
