package outbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// TestKill has three relay processes, one of which is killed over and over, publish jobs with and without keys while they are enqueued. None
// is lost, none that was rolled back arrives, doubles carry the same job id and stay within a batch a kill, and the first copies
// of a key's jobs come in order.
func TestKill(t *testing.T) {
	t.Parallel()
	jobs, kills := 600, 8
	if os.Getenv("SOAK") == "1" {
		jobs, kills = 20_000, 100
	}
	const lanes, q = 6, "jobs"
	r := newRig(t, pgdb.Config{})
	url, file := testserver.Postgres(t), filepath.Join(t.TempDir(), "queue.db")
	broker := openEmbedded(t, file)
	r.broker = broker
	r.queue(q)

	running := make([]func(), 3)
	for i := range running {
		running[i] = r.startChild(url, file)
	}
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() { r.produce(q, lane, jobs/lanes) })
	}
	for range kills {
		time.Sleep(20*time.Millisecond + rand.N(300*time.Millisecond)) // anywhere in its work
		i := rand.IntN(len(running))
		running[i]()
		running[i] = r.startChild(url, file)
	}
	wg.Wait()
	r.drained()
	for _, kill := range running {
		kill()
	}

	seen, next, doubles := map[string]string{}, map[int]int{}, 0
	depth, err := broker.Depth(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.receive(q, int(depth.Ready.N)) {
		env, err := l.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		if body, double := seen[env.ID]; double {
			doubles++
			if body != string(l.Body) {
				t.Errorf("job %s has bodies %q and %q", env.ID, body, l.Body)
			}
			continue
		}
		seen[env.ID] = string(l.Body)
		var lane, n int
		if _, err := fmt.Sscan(string(l.Body), &lane, &n); err != nil {
			t.Fatalf("%q should have been rolled back: %v", l.Body, err)
		}
		if lane%2 == 0 && n != next[lane] {
			t.Errorf("key %d: job %d came when %d was next", lane, n, next[lane])
		}
		next[lane]++
	}
	if want := jobs / lanes * lanes; len(seen) != want {
		t.Errorf("%d of %d jobs arrived", len(seen), want)
	}
	if most := (kills + len(running)) * childBatch; doubles > most {
		t.Errorf("%d doubles after %d kills of relays with batches of %d", doubles, kills+len(running), childBatch)
	}
	t.Logf("%d jobs, %d kills, %d doubles", len(seen), kills, doubles)
}

// produce enqueues n jobs through a client, one or a few in a transaction, now and then one that is rolled back. Even lanes are ordered.
func (r *rig) produce(q string, lane, n int) {
	for done := 0; done < n; {
		tx, err := r.pool.Begin(r.Context())
		if err != nil {
			r.Error(err)
			return
		}
		sender := r.box.In(tx)
		if lane%2 == 0 {
			sender = sender.Ordered()
		}
		client, err := worker.NewClient(worker.ClientConfig{Broker: sender, DefaultQueue: q})
		if err != nil {
			r.Error(err)
			return
		}
		size := min(1+rand.IntN(5), n-done)
		body, back := strconv.Itoa(lane), rand.IntN(10) == 0
		var batch []worker.NewJob
		for i := range size {
			payload := []byte(fmt.Sprint(body, " ", done+i))
			if back {
				payload = []byte("rolled back")
			}
			batch = append(batch, worker.NewJob{Kind: "count", Payload: payload, Destination: "lane-" + body})
		}
		for _, res := range client.EnqueueMany(r.Context(), batch) {
			if res.Err != nil {
				r.Error(res.Err)
			}
		}
		if back {
			err = tx.Rollback(r.Context())
		} else {
			err, done = tx.Commit(r.Context()), done+size
		}
		if err != nil {
			r.Error(err)
			return
		}
	}
}

// TestDoublesHaveOneDedupID: a confirmation that got lost has the same publication published again, the deduplication id included, so
// that a broker which drops doubles drops it.
func TestDoublesHaveOneDedupID(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgdb.Config{})
	useSQS(r, ".fifo")
	q := r.queue("jobs")
	var ids []string
	stop := r.relay(RelayConfig{Broker: &publishing{Broker: r.broker, after: func(n int, pubs []queue.Publication, results []queue.PublishResult) {
		ids = append(ids, pubs[0].DedupID)
		if n == 1 {
			results[0].Err = queue.ErrUnavailable
		}
	}}, Parallel: 1})
	job := text(q, "once")
	job.Group = "g"
	r.in(func(tx pgx.Tx) {
		if _, err := r.box.Enqueue(t.Context(), tx, job); err != nil {
			t.Fatal(err)
		}
	})
	r.drained()
	last := text(q, "last")
	last.Group = "g"
	r.enqueue(last)
	if got := bodies(r.receive(q, 2)); got[0] != "once" || got[1] != "last" {
		t.Errorf("received %q", got)
	}
	stop()
	if len(ids) < 2 || ids[0] != ids[1] || ids[0] == "" {
		t.Errorf("deduplication ids %q", ids)
	}
}
