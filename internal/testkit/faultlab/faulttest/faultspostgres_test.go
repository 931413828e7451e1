package faulttest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
)

// loadFault takes the database of claims and dead letters away from a working worker. See [faultlab.Trial] for what must hold.
type loadFault struct {
	name   string
	inject func(t testing.TB, p *place)
}

const leaseUnderLoad = 2 * time.Second

var restarted = loadFault{"restarted", func(t testing.TB, p *place) { p.server.Restart(t) }}

// loadFaults are those that leave the server to others.
func loadFaults() []loadFault {
	faults := []loadFault{
		// Longer than a lease: the claims of the jobs that run have run out when the database is back.
		{"cut off for two leases", func(t testing.TB, p *place) {
			p.proxy.Cut()
			linger(t, 2*leaseUnderLoad)
			p.proxy.Restore()
		}},
		{"connections dropped", func(t testing.TB, p *place) {
			for range 10 {
				p.proxy.Drop()
				linger(t, 100*time.Millisecond)
			}
		}},
	}
	if !soak() { // else the faults that the tests beside it look at closely
		return faults
	}
	for _, f := range databaseFaults {
		faults = append(faults, f.underALoad())
	}
	return faults
}

// underALoad strikes for a second.
func (f postgresFault) underALoad() loadFault {
	return loadFault{f.name + " for a second", func(t testing.TB, p *place) {
		f.strike(t, p)
		linger(t, time.Second)
		f.mend(t, p)
	}}
}

func (f loadFault) try(t *testing.T, server *testserver.PostgresServer) {
	t.Helper()
	p := newPlace(t, server)
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
		Lease:       leaseUnderLoad,
	}
	if !soak() {
		rig.Jobs = 200
	}
	faultlab.Trial(t, rig, faultlab.Fault{Name: f.name, Inject: func(t testing.TB, _ string) { f.inject(t, p) }})
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
