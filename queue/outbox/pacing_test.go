package outbox

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// TestTransactionFromBeforeTheWish: a transaction that enqueued while nobody wished to be notified, and commits when a relay waits for
// notifications, is found all the same.
func TestTransactionFromBeforeTheWish(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			r := newEmbedded(t)
			r.queue(q)
			tx, err := r.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.box.Enqueue(t.Context(), tx, text(q, "unannounced")); err != nil {
				t.Fatal(err)
			}
			relay := r.idleRelay(RelayConfig{DirectURL: testserver.Postgres(t)})
			cycle := func() (found bool) {
				t.Helper()
				found, _, err := relay.cycle(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			if arm, _ := relay.pacing.idle(time.Now()); cycle() || !arm || !relay.arm(t.Context()) || !r.told() || cycle() {
				t.Fatal("an idle relay has not armed, or has found what is not there")
			}
			if _, poll := relay.pacing.idle(time.Now()); poll == 0 {
				t.Error("the relay waits for a notification while a transaction is open that will not notify")
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !cycle() {
				t.Error("the job was not found")
			}
			r.until("the relay waits for notifications only", func() bool { // until the transactions of other tests have ended
				_, poll := relay.pacing.idle(time.Now())
				return poll == 0 || cycle()
			})
		})
	}
}

// TestBusyRelayIsNotNotified, and is again when it has become idle.
func TestBusyRelayIsNotNotified(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	r.relay(RelayConfig{DirectURL: testserver.Postgres(t), Poll: 4 * time.Hour, Parallel: 1, Batch: 4})
	r.until("the relay waits for notifications", r.told)
	n := 0
	r.until("the relay is busy", func() bool {
		for range 4 {
			r.enqueue(text(q, "1"), text(q, "2"), text(q, "3"), text(q, "4"), text(q, "5"), text(q, "6"), text(q, "7"), text(q, "8"))
			n += 8
		}
		return !r.told()
	})
	r.receive(q, n)
	r.until("the relay is idle", r.told)
	r.enqueue(text(q, "announced"))
	r.receive(q, 1)
}

// told reports whether transactions notify.
func (r *rig) told() bool {
	r.Helper()
	var told bool
	if err := r.pool.QueryRow(r.Context(), r.box.sql.pacing).Scan(&told, nil); err != nil {
		r.Fatal(err)
	}
	return told
}

func TestPacing(t *testing.T) {
	t.Parallel()
	var tp pacing
	now := time.Unix(1e9, 0)
	want := func(what string, at time.Time, arm bool, poll time.Duration) {
		t.Helper()
		if gotArm, gotPoll := tp.idle(at); gotArm != arm || gotPoll != poll {
			t.Errorf("%s: arm %t, poll %s; want %t, %s", what, gotArm, gotPoll, arm, poll)
		}
	}
	answer := func(told bool, ended int64) {
		t.Helper()
		if err := tp.scan(answerRow{told, ended}); err != nil {
			t.Fatal(err)
		}
	}
	want("at the start", now, true, shortPoll)
	tp.arm(now, 100)
	want("just armed", now, false, shortPoll)
	answer(true, 99)
	want("an older transaction is open", now.Add(2*time.Second), false, 500*time.Millisecond)
	want("for long", now.Add(time.Hour), false, calm)
	answer(true, 100)
	want("all have ended", now, false, 0)
	if tp.busy(busyStreak-1, now) || !tp.busy(busyStreak, now) || tp.busy(busyStreak+1, now) {
		t.Error("a relay becomes busy once, at the end of a streak")
	}
	want("busy until just now", now.Add(calm-1), false, shortPoll)
	want("calm", now.Add(calm), true, shortPoll)
	tp.arm(now, 200)
	answer(true, 200)
	tp.observe(false)
	want("another relay has disarmed", now.Add(calm), true, shortPoll)
	answer(true, 300)
	want("another relay has armed, for itself", now.Add(calm), true, shortPoll)
}

// answerRow is an answer to sqlTempo.
type answerRow struct {
	told  bool
	ended int64
}

func (a answerRow) Scan(dest ...any) error {
	*dest[0].(*bool), *dest[1].(*int64) = a.told, a.ended
	return nil
}
