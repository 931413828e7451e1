package outbox

import (
	"path/filepath"
	"testing"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// TestConformancePgBouncer has no session of its own, but for the one that listens: hardly two transactions run in the same one.
func TestConformancePgBouncer(t *testing.T) {
	t.Parallel()
	direct := testserver.Postgres(t)
	url := testserver.PgBouncer(t, direct)
	for name, listen := range map[string]string{"listening": direct, "polling": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, pgdb.Config{URL: url, Pooler: true, MaxConns: 12})
			r.broker = openEmbedded(t, filepath.Join(t.TempDir(), "queue.db"))
			r.relay(RelayConfig{Parallel: 2, DirectURL: listen})
			r.conform()
		})
	}
}
