package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/schedule"
)

// publishing is a real broker whose answers a test sees and may change. n counts the calls from 1.
type publishing struct {
	queue.Broker
	calls atomic.Int64
	after func(n int, pubs []queue.Publication, results []queue.PublishResult)
}

func (p *publishing) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := p.Broker.Publish(ctx, name, pubs)
	p.after(int(p.calls.Add(1)), pubs, results)
	return results
}

// TestOrderSurvivesFaults has three relays publish ordered jobs to a broker that refuses, is away, and loses confirmations at random.
func TestOrderSurvivesFaults(t *testing.T) {
	t.Parallel()
	const lanes, each, q = 4, 40, "jobs"
	r := newEmbedded(t)
	r.queue(q)
	faults := []queuetest.Fault{
		{Before: queue.ErrUnavailable}, {After: queue.ErrUnavailable}, {Before: errors.New("refused")}, {After: errors.New("refused, it says")},
	}
	plan := func(p queuetest.Point) queuetest.Fault {
		if p.Op == queuetest.OpPublish && rand.IntN(12) == 0 {
			return faults[rand.IntN(len(faults))]
		}
		return queuetest.Fault{}
	}
	for range 3 {
		r.relay(RelayConfig{Broker: queuetest.NewFaultBroker(r.broker, plan), Batch: 20, Parallel: 2, MaxAttempts: 1000})
	}
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() { r.produce(q, 2*lane, each) })
	}
	wg.Wait()
	r.drained()
	depth, err := r.broker.Depth(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	next, seen := map[int]int{}, map[string]bool{}
	for _, l := range r.receive(q, int(depth.Ready.N)) {
		env, err := l.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		if seen[env.ID] {
			continue
		}
		seen[env.ID] = true
		var lane, n int
		if _, err := fmt.Sscan(string(l.Body), &lane, &n); err != nil {
			t.Fatal(err)
		}
		if n != next[lane] {
			t.Errorf("key %d: job %d came when %d was next", lane, n, next[lane])
		}
		next[lane]++
	}
	if len(seen) != lanes*each {
		t.Errorf("%d of %d jobs arrived", len(seen), lanes*each)
	}
}

// TestHeadBlocksItsKeyOnly parks the first job of a key. Those behind it wait, also when they come later; others go on. Once it is discarded,
// its key goes on.
func TestHeadBlocksItsKeyOnly(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newRig(t, pgdb.Config{})
	b, err := embedded.Open(t.Context(), embedded.Config{Path: filepath.Join(t.TempDir(), "queue.db"), MaxBody: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	r.broker = b
	r.queue(q)
	var mu sync.Mutex
	var events []Event
	stop := r.relay(RelayConfig{MaxAttempts: 3, Observer: observe(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	})})
	keyed := func(key, body string) Job {
		j := text(q, body)
		j.OrderingKey = key
		return j
	}
	ids := r.enqueue(keyed("a", strings.Repeat("too large ", 200)), keyed("a", "second"), keyed("b", "free"), text(q, "unkeyed"))
	if got := bodies(r.receive(q, 2)); got[0] == "second" || got[1] == "second" {
		t.Errorf("received %q", got)
	}
	r.until("the job is stuck", func() bool {
		return r.stats().Stuck == 1 && r.stats().Waiting == 1
	})
	r.enqueue(keyed("a", "third"), keyed("b", "free too"))
	if got := bodies(r.receive(q, 1)); got[0] != "free too" {
		t.Errorf("received %q", got)
	}
	list, err := r.box.Refused(t.Context(), r.pool, 10)
	if err != nil || len(list) != 1 || !list[0].Stuck || list[0].ID != ids[0] || list[0].Attempts != 3 || list[0].OrderingKey != "a" ||
		!strings.Contains(list[0].Error, "limit of 1000 bytes") || !list[0].Next.IsZero() || list[0].Size != 2000 {
		t.Errorf("refused: %+v, %v", list, err)
	}
	if n, err := r.box.Discard(t.Context(), r.pool, ids...); err != nil || n != 1 {
		t.Fatalf("discarded %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"second", "third"}, bodies(r.receive(q, 2))); diff != "" {
		t.Error(diff)
	}
	r.drained()
	stop()
	var sum Event
	for _, e := range events {
		sum.Published += e.Published
		sum.Refused += e.Refused
		sum.Parked += e.Parked
	}
	if want := (Event{Published: 5, Refused: 3, Parked: 1}); sum != want {
		t.Errorf("events add up to %+v, want %+v", sum, want)
	}
}

type observe func(Event)

func (f observe) Observe(e Event) { f(e) }

// TestBrokerAwayAndBack cuts RabbitMQ off. Jobs wait without an attempt spent, and go out once it is back.
func TestBrokerAwayAndBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgdb.Config{})
	useRabbitMQ(r)
	q := r.queue("away")
	amqpURL := testserver.AMQP(t)
	u, err := url.Parse(amqpURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.StartProxy(t, u.Host)
	b, err := rabbitmq.Open(t.Context(), rabbitmq.Config{URLs: []string{proxy.URL(amqpURL)}, Prefix: "cs1.", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	away := make(chan struct{}, 1000)
	stop := r.relay(RelayConfig{Broker: b, MaxAttempts: 1, PublishTimeout: 500 * time.Millisecond, Observer: observe(func(e Event) {
		if e.Unavailable {
			away <- struct{}{}
		}
	})})
	defer stop()
	r.enqueue(text(q, "before"))
	r.receive(q, 1)
	r.drained() // also the confirmation has come
	proxy.Cut()
	var jobs []Job
	for n := range 50 {
		jobs = append(jobs, text(q, fmt.Sprint("during ", n)))
	}
	r.enqueue(jobs...)
	for range 3 {
		<-away
	}
	if s := r.stats(); s.Fresh != 50 || s.Waiting+s.Stuck != 0 || s.Oldest <= 0 {
		t.Errorf("while the broker is away: %+v", s)
	}
	proxy.Restore()
	r.receive(q, 50)
	r.drained()
}

// TestDatabaseAwayAndBack cuts a relay off from the database, also between publishing and deleting.
func TestDatabaseAwayAndBack(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	pgURL := testserver.Postgres(t)
	u, err := url.Parse(pgURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.StartProxy(t, u.Host)
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: proxy.URL(pgURL)})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	cut := make(chan struct{})
	stop := r.relay(RelayConfig{
		Pool: pool, DirectURL: proxy.URL(pgURL), Parallel: 1, Lease: time.Second,
		Broker: &publishing{Broker: r.broker, after: func(n int, _ []queue.Publication, _ []queue.PublishResult) {
			if n == 1 {
				proxy.Cut()
				close(cut)
			}
		}},
	})
	defer stop()
	r.enqueue(text(q, "published while the database went away"))
	<-cut
	r.enqueue(text(q, "after"))
	proxy.Restore()
	r.drained()
	got := map[string]int{}
	depth, err := r.broker.Depth(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies(r.receive(q, int(depth.Ready.N))) {
		got[body]++
	}
	// The relay has insisted on deleting what it had published, so there is no double.
	if diff := cmp.Diff(map[string]int{"published while the database went away": 1, "after": 1}, got); diff != "" {
		t.Error(diff)
	}
}

// TestStaleRelayChangesNothing: what a relay that lost its lease records of jobs that it could not publish is void, and what it did
// publish is gone.
func TestStaleRelayChangesNothing(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	relay, other := r.idleRelay(RelayConfig{Lease: time.Second}), r.idleRelay(RelayConfig{Lease: time.Hour})
	keyed := func(body string) Job {
		j := text(q, body)
		j.OrderingKey = "k"
		return j
	}
	r.enqueue(keyed("1"), keyed("2"), keyed("3"))
	stale, leased, _, err := relay.read(t.Context(), 41)
	if err != nil || !leased || len(stale) != 3 {
		t.Fatalf("%d rows, %t, %v", len(stale), leased, err)
	}
	if rows, leased, next, err := other.read(t.Context(), 43); err != nil || leased || len(rows) != 0 || next <= 0 {
		t.Fatalf("a second relay reads %d rows of a leased shard (%t), and looks again in %s: %v", len(rows), leased, next, err)
	}
	r.until("the lease is over", func() bool {
		fresh, leased, _, err := other.read(t.Context(), 45)
		if err != nil {
			t.Fatal(err)
		}
		return leased && len(fresh) == 3
	})
	late := outcomes{list: []outcome{{what: published}, {what: refused, err: errors.New("late")}, {what: behind}}}
	if err := relay.record(t.Context(), 41, stale, late); err != nil {
		t.Fatal(err)
	}
	if s := r.stats(); s.Fresh != 2 || s.Waiting != 0 {
		t.Errorf("after the stale relay: %+v", s)
	}
	if rows, leased, _, err := other.read(t.Context(), 47); err != nil || leased || len(rows) > 0 {
		t.Errorf("the stale relay has given back a shard that is not its own: %v, %v", rows, err)
	}
}

// idleRelay is a relay that does not run.
func (r *rig) idleRelay(cfg RelayConfig) *Relay {
	r.Helper()
	cfg.Pool, cfg.Broker, cfg.Schema, cfg.Logger = r.pool, r.broker, r.schema, slog.New(slog.DiscardHandler)
	relay, err := NewRelay(cfg)
	if err != nil {
		r.Fatal(err)
	}
	return relay
}

// TestClosedBrokerEndsRelay: nobody can publish any more.
func TestClosedBrokerEndsRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgdb.Config{})
	b, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	r.broker = b
	r.queue("jobs")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r.enqueue(text("jobs", "left"))
	if err := r.idleRelay(RelayConfig{}).Run(t.Context()); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Run returns %v", err)
	}
	if s := r.stats(); s.Fresh != 1 {
		t.Errorf("left %+v", s)
	}
}

// TestStopFinishes: a stop waits for the call under way and records it.
func TestStopFinishes(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	called := make(chan struct{})
	var once sync.Once
	slow := queuetest.NewFaultBroker(r.broker, func(p queuetest.Point) queuetest.Fault {
		if p.Op == queuetest.OpPublish {
			once.Do(func() { close(called) })
		}
		return queuetest.Fault{Delay: 300 * time.Millisecond}
	})
	stop := r.relay(RelayConfig{Broker: slow})
	r.enqueue(text(q, "slow"))
	<-called
	stop()
	if s := r.stats(); s.Pending() != 0 {
		t.Errorf("left %+v", s)
	}
	r.receive(q, 1)
}

// TestManyRefusedLeaveRoom: jobs that are refused again and again, more of them than a relay reads at once, do not keep others waiting.
func TestManyRefusedLeaveRoom(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	bad := make([]Job, 200)
	for i := range bad {
		bad[i] = text("missing", "bad")
	}
	r.enqueue(bad...)
	hot, err := schedule.Constant(time.Millisecond, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	r.relay(RelayConfig{Batch: 8, Parallel: 1, MaxAttempts: 1_000_000, Backoff: hot})
	r.until("all are refused", func() bool { return r.stats().Waiting == 200 })
	good := make([]Job, 50)
	for i := range good {
		good[i] = text(q, "good")
	}
	r.enqueue(good...)
	r.receive(q, len(good))
	if s := r.stats(); s.Waiting != 200 {
		t.Errorf("%+v", s)
	}
}

// TestWhatIsPublishedIsDeletedWhateverElseFails: a refusal whose error the database cannot keep has nothing else published again and again.
func TestWhatIsPublishedIsDeletedWhateverElseFails(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	// As in a database whose encoding lacks a letter.
	if _, err := r.pool.Exec(t.Context(), "ALTER TABLE "+r.schema+".outbox_waiting ADD CHECK (last_error <> 'unspeakable')"); err != nil {
		t.Fatal(err)
	}
	var good, bad atomic.Int64
	broker := &publishing{Broker: r.broker, after: func(_ int, pubs []queue.Publication, results []queue.PublishResult) {
		for i, p := range pubs {
			if string(p.Body) == "bad" {
				bad.Add(1)
				results[i].Err = errors.New("unspeakable")
				continue
			}
			good.Add(1)
		}
	}}
	r.enqueue(text(q, "good"), text(q, "bad"), text(q, "good"))
	stop := r.relay(RelayConfig{Broker: broker, Parallel: 1})
	r.until("the bad one is offered again", func() bool { return bad.Load() > 2 })
	stop()
	if n := good.Load(); n != 2 {
		t.Errorf("2 good jobs were published %d times", n)
	}
	if s := r.stats(); s.Pending() != 1 {
		t.Errorf("left: %+v", s)
	}
}

// answering is a broker whose publishes a test does.
type answering struct {
	queue.Broker
	publish func(pubs []queue.Publication) []queue.PublishResult
}

func (a *answering) Publish(_ context.Context, _ string, pubs []queue.Publication) []queue.PublishResult {
	return a.publish(pubs)
}

// A job that is tried again by hand while a relay tries it for the last time is not parked by that relay.
func TestRetryDuringAnAttemptHolds(t *testing.T) {
	t.Parallel()
	r := newEmbedded(t)
	var tries atomic.Int32
	under, goOn := make(chan struct{}), make(chan struct{})
	stop := r.relay(RelayConfig{MaxAttempts: 2, Broker: &answering{r.broker, func(pubs []queue.Publication) []queue.PublishResult {
		n := tries.Add(1)
		if n == 2 {
			close(under)
			<-goOn
		}
		if n > 2 {
			return r.broker.Publish(t.Context(), "jobs", pubs)
		}
		results := make([]queue.PublishResult, len(pubs))
		for i := range results {
			results[i].Err = errors.New("refused")
		}
		return results
	}}})
	defer stop()
	r.queue("jobs")
	r.enqueue(text("jobs", "once more"))
	<-under
	if n, err := r.box.Retry(r.Context(), r.pool); n != 1 || err != nil {
		t.Errorf("%d jobs are tried again, %v", n, err)
	}
	close(goOn)
	r.receive("jobs", 1)
}
