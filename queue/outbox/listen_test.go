package outbox

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// TestNotificationWakes: with a poll interval of an hour only notifications bring jobs.
func TestNotificationWakes(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	r.relay(RelayConfig{DirectURL: testserver.Postgres(t), Poll: 4 * time.Hour})
	for range 20 {
		r.enqueue(text(q, "now"))
		r.receive(q, 1)
	}
}

// TestLostListenerRecovers ends the listening connection on the server. What is committed meanwhile arrives when it is back.
func TestLostListenerRecovers(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	r.relay(RelayConfig{DirectURL: testserver.Postgres(t), Poll: 4 * time.Hour})
	kill := func() (killed bool) {
		const sql = `SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity WHERE query = 'LISTEN "' || $1::text || '"'`
		if err := r.pool.QueryRow(t.Context(), sql, channelOf(r.schema)).Scan(&killed); err != nil {
			t.Fatal(err)
		}
		return killed
	}
	for range 3 {
		r.until("the relay listens", kill)
		r.enqueue(text(q, "unheard"))
		r.receive(q, 1)
	}
}

// TestPollingAlone: without notifications, and with a listener that never gets a connection, polling finds the jobs.
func TestPollingAlone(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	r.box = r.newBox(Config{Silent: true})
	r.relay(RelayConfig{DirectURL: "postgres://nobody:secret@127.0.0.1:1/none?sslmode=disable"})
	r.enqueue(text(q, "found"))
	r.receive(q, 1)
}

func TestChannelFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("schema", 10)
	if a, b := channelOf(long), channelOf(long+"x"); a == b || len(a) > 63 || channelOf("public") != "caisson_outbox.public" {
		t.Errorf("channels %q, %q, %q", a, b, channelOf("public"))
	}
}
