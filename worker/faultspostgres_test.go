package worker_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
)

// TestFaultsPostgres takes the database of claims and dead letters away from a working worker. See [faultlab.Matrix] for what must hold.
func TestFaultsPostgres(t *testing.T) {
	p := newPlace(t, testserver.StartPostgres(t))
	rig := faultlab.Rig{
		Open: func(t testing.TB) queue.Broker {
			t.Helper()
			broker, err := embedded.Open(t.Context(), embedded.Config{Path: filepath.Join(t.TempDir(), "queue.db")})
			if err != nil {
				t.Fatal(err)
			}
			return broker
		},
		Stores:      p.stores,
		Connections: func(testing.TB) int { return p.proxy.Connections() },
		Lease:       2 * time.Second,
		Jobs:        jobsOfAFault(),
	}
	faults := []faultlab.Fault{}
	if soak() { // else TestPostgresAway has them, each with a look at what goes on meanwhile
		for _, f := range postgresFaults {
			faults = append(faults, faultlab.Fault{Name: f.name, Inject: func(t testing.TB, _ string) {
				f.strike(t, p)
				linger(t, time.Second)
				f.mend(t, p)
			}})
		}
	}
	// Longer than a lease: the claims of the jobs that run have run out when the database is back.
	faults = append(faults, faultlab.Fault{Name: "cut off for two leases", Inject: func(t testing.TB, _ string) {
		p.proxy.Cut()
		linger(t, 2*rig.Lease)
		p.proxy.Restore()
	}}, faultlab.Fault{Name: "restarted", Inject: func(t testing.TB, _ string) {
		p.server.Restart(t)
	}}, faultlab.Fault{Name: "connections dropped", Inject: func(t testing.TB, _ string) {
		for range 10 {
			p.proxy.Drop()
			linger(t, 100*time.Millisecond)
		}
	}})
	faultlab.Matrix(t, rig, faults)
}

// jobsOfAFault is what a fault is tried with if it is not the long form.
func jobsOfAFault() int {
	if soak() {
		return 0 // the lab's own
	}
	return 200
}

func (p *place) stores(t testing.TB) faultlab.Stores {
	t.Helper()
	pool, schema := p.pool(t)
	claims, dead, err := openPostgres(pool, schema)
	if err != nil {
		t.Fatal(err)
	}
	return faultlab.Stores{Claims: claims, Dead: dead, Close: func() error {
		claims.Close()
		pool.Close()
		return nil
	}}
}

// linger is how long a fault lasts.
func linger(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func soak() bool { return os.Getenv("SOAK") != "" }
