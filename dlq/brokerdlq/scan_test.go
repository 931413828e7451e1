package brokerdlq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/queue"
)

// deadJob returns the dead letter of a job with a payload of size bytes.
func deadJob(t testing.TB, job, name string, size int) dlq.Entry {
	t.Helper()
	env := queue.Envelope{ID: job, Kind: "email.send", Key: "key of " + job, EnqueuedAt: time.Now()}
	m, err := queue.NewMessage(env, []byte(strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	return dlq.Entry{Job: job, State: dlq.StateDead, Queue: name, Kind: env.Kind, Key: env.Key, Cause: dlq.CauseExhausted, Error: "boom", Message: m}
}

// takeAll receives what is visible in a queue of the embedded broker.
func takeAll(t testing.TB, b queue.Broker, name string) []queue.Message {
	t.Helper()
	sub, err := b.Subscribe(t.Context(), name, queue.SubscribeConfig{Slots: 10 * killJobs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}()
	for messages := []queue.Message(nil); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		leases, err := sub.Receive(ctx, 1000)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			messages = append(messages, l.Message)
			if err := l.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// setUp returns a broker in memory with queue q, and its dead letters.
func setUp(t *testing.T, wrap func(queue.Broker) queue.Broker, cfg brokerdlq.Config) (queue.Broker, *brokerdlq.Queues) {
	t.Helper()
	var b queue.Broker = inMemory(t)
	if wrap != nil {
		b = wrap(b)
	}
	if err := b.CreateQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	cfg.Broker = b
	letters, err := brokerdlq.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b, letters
}

func put(t *testing.T, letters *brokerdlq.Queues, entries ...dlq.Entry) {
	t.Helper()
	if err := errors.Join(letters.Put(t.Context(), entries)...); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
}

func jobs(t *testing.T, n int) []dlq.Entry {
	t.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = deadJob(t, fmt.Sprintf("job-%d", i), "q", 10)
	}
	return entries
}

func TestMissingDeadLetterQueueIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, letters := setUp(t, nil, brokerdlq.Config{})
		put(t, letters, jobs(t, 3)...)
		depth, err := letters.Depth(t.Context())
		if diff := cmp.Diff(dlq.Depth{Dead: []dlq.DeadDepth{{Queue: "q", Count: 3}}}, depth); diff != "" || err != nil {
			t.Errorf("%v; depth (-want +got):\n%s", err, diff)
		}
	})
}

// A broker may hold queues of others, which no command touches that does not name them.
func TestQueuesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, all := setUp(t, nil, brokerdlq.Config{})
		theirs := deadJob(t, "theirs", "other", 10)
		put(t, all, append(jobs(t, 3), theirs)...)
		letters, err := brokerdlq.New(brokerdlq.Config{Broker: b, Queues: []string{"q", "not-there", "q"}})
		if err != nil {
			t.Fatal(err)
		}
		depth, err := letters.Depth(t.Context())
		if diff := cmp.Diff(dlq.Depth{Dead: []dlq.DeadDepth{{Queue: "q", Count: 3}}}, depth); diff != "" || err != nil {
			t.Errorf("%v; depth (-want +got):\n%s", err, diff)
		}
		if purged, scanned, err := letters.Purge(t.Context(), dlq.Filter{}); err != nil || purged != 3 {
			t.Errorf("report %d, %+v, %v", purged, scanned, err)
		}
		if purged, scanned, err := letters.Purge(t.Context(), dlq.Filter{Queue: "other"}); err != nil || purged != 1 {
			t.Errorf("report %d, %+v, %v", purged, scanned, err)
		}
	})
}

// A scan may last longer than a lease: what it keeps, and what waits for its turn, stays with it.
func TestLongPassKeepsItsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, nil, brokerdlq.Config{Lease: time.Second})
		entries := jobs(t, 300)
		for i := range entries[:150] {
			entries[i].Destination = "other"
		}
		put(t, letters, entries...)
		report, scanned, err := letters.Replay(t.Context(), replay.Config{Filter: dlq.Filter{Destination: "other"}, Rate: 10})
		if err != nil || report.Replayed != 150 || scanned.PassedOver != 150 || scanned.Copies != 0 {
			t.Errorf("report %+v, %+v, %v", report, scanned, err)
		}
		if got := takeAll(t, b, "q"); len(got) != 150 {
			t.Errorf("%d messages were published, want 150", len(got))
		}
	})
}

// stall makes the acks of dead letters wait longer than their leases last.
type stall struct {
	queue.Broker
	pause time.Duration
	once  sync.Once
}

func (s *stall) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := s.Broker.Publish(ctx, name, pubs)
	if !queue.IsDLQ(name) {
		s.once.Do(func() { time.Sleep(s.pause) })
	}
	return results
}

func (s *stall) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := s.Broker.Subscribe(ctx, name, cfg)
	return noExtend{sub}, err
}

// noExtend hands out leases that cannot be extended.
type noExtend struct{ queue.Subscription }

func (n noExtend) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	leases, err := n.Subscription.Receive(ctx, most)
	for _, l := range leases {
		l.Ceiling = l.Deadline()
	}
	return leases, err
}

// A lease may end between publish and ack: the message comes again in the same scan, and is removed without being published again.
func TestLeaseLostAfterPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, func(b queue.Broker) queue.Broker { return &stall{Broker: b, pause: 3 * time.Second} }, brokerdlq.Config{Lease: 2 * time.Second})
		put(t, letters, jobs(t, 10)...)
		report, scanned, err := letters.Replay(t.Context(), replay.Config{})
		if err != nil || report.Replayed != 10 || scanned.Copies != 10 {
			t.Errorf("report %+v, %+v, %v", report, scanned, err)
		}
		if got := takeAll(t, b, "q"); len(got) != 10 {
			t.Errorf("%d messages were published, want 10", len(got))
		}
		if got := takeAll(t, b, queue.DLQ("q")); len(got) != 0 {
			t.Errorf("%d dead letters are left", len(got))
		}
	})
}

// fifo is a queue with a dedup window of 5 minutes, which outlives removal.
type fifo struct {
	queue.Broker
	mu   sync.Mutex
	seen map[string]time.Time
	pubs map[string][]queue.Publication
}

func (f *fifo) Capabilities(name string) queue.Capabilities {
	c := f.Broker.Capabilities(name)
	c.FIFO = true
	return c
}

func (f *fifo) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	results := make([]queue.PublishResult, len(pubs))
	for i, p := range pubs {
		if p.Group == "" {
			results[i].Err = errors.New("no group")
			continue
		}
		if at, ok := f.seen[name+p.DedupID]; ok && time.Since(at) < 5*time.Minute {
			continue // accepted and dropped
		}
		results[i] = f.Broker.Publish(ctx, name, []queue.Publication{p})[0]
		if errors.Is(results[i].Err, queue.ErrQueueNotFound) {
			continue
		}
		f.seen[name+p.DedupID] = time.Now()
		f.pubs[name] = append(f.pubs[name], p)
	}
	return results
}

// Field case G2.
func TestReplayWithinADedupWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fifo{seen: map[string]time.Time{}, pubs: map[string][]queue.Publication{}}
		b, letters := setUp(t, func(b queue.Broker) queue.Broker { f.Broker = b; return f }, brokerdlq.Config{})
		entry := deadJob(t, "ordered", "q", 10)
		entry.Group = "order 7"
		foreign := dlq.Entry{
			Job: "q:17", State: dlq.StateDead, Queue: "q", Kind: "legacy", Group: "order 8", Cause: dlq.CauseRejected, Error: "no",
			Message: queue.Message{Body: []byte("foreign")},
		}
		other := entry
		other.Message.Body = []byte("another payload")
		first := queue.Publication{Message: entry.Message, Group: "order 7", DedupID: "ordered"}
		if r := b.Publish(t.Context(), "q", []queue.Publication{first}); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		takeAll(t, b, "q")
		time.Sleep(10 * time.Second)
		put(t, letters, entry, foreign, other)
		time.Sleep(10 * time.Second)
		for range 2 { // the second run adds nothing
			if _, _, err := letters.Replay(t.Context(), replay.Config{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := takeAll(t, b, "q"); len(got) != 3 {
			t.Errorf("%d messages reached the queue, want 3", len(got))
		}
		for _, p := range f.pubs["q"][1:] {
			want := "order 7"
			if string(p.Body) == "foreign" {
				want = "order 8"
			}
			if p.Group != want {
				t.Errorf("%s went to group %q, want %q", p.DedupID, p.Group, want)
			}
		}
		// It dies again within the window, and goes again.
		entry.Run = 1
		put(t, letters, entry)
		if report, scanned, err := letters.Replay(t.Context(), replay.Config{}); err != nil || report.Replayed != 1 {
			t.Errorf("report %+v, %+v, %v", report, scanned, err)
		}
		if got := takeAll(t, b, "q"); len(got) != 1 {
			t.Errorf("%d messages of the second life, want 1", len(got))
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, cfg := range []brokerdlq.Config{{}, {Broker: &stall{}, Lease: -1}, {Broker: &stall{}, MaxKept: -1}} {
		if _, err := brokerdlq.New(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

// nameless gives all messages of others one id, and fails its first receives.
type nameless struct {
	queue.Broker
	mu       sync.Mutex
	failures int
}

func (n *nameless) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := n.Broker.Subscribe(ctx, name, cfg)
	return namelessSubscription{sub, n}, err
}

type namelessSubscription struct {
	queue.Subscription
	n *nameless
}

func (s namelessSubscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	s.n.mu.Lock()
	s.n.failures--
	failing := s.n.failures >= 0
	s.n.mu.Unlock()
	if failing {
		time.Sleep(100 * time.Millisecond)
		return nil, fmt.Errorf("throttled: %w", queue.ErrUnavailable)
	}
	leases, err := s.Subscription.Receive(ctx, most)
	for _, l := range leases {
		l.ID = "tag/1"
	}
	return leases, err
}

// Messages of others look alike where the broker has no ids for them: none is taken for a copy. A broker that fails for a while is no empty
// queue.
func TestMessagesWithoutAName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, func(b queue.Broker) queue.Broker { return &nameless{Broker: b, failures: 100} }, brokerdlq.Config{})
		if err := b.CreateQueue(t.Context(), queue.DLQ("q")); err != nil {
			t.Fatal(err)
		}
		ping := queue.Publication{Message: queue.Message{Body: []byte("ping")}}
		if r := b.Publish(t.Context(), queue.DLQ("q"), []queue.Publication{ping, ping, ping}); r[2].Err != nil {
			t.Fatal(r[2].Err)
		}
		time.Sleep(time.Second)
		report, scanned, err := letters.Replay(t.Context(), replay.Config{})
		if err != nil || report.Replayed != 3 || scanned.Copies != 0 {
			t.Errorf("report %+v, %+v, %v", report, scanned, err)
		}
		if got := takeAll(t, b, "q"); len(got) != 3 {
			t.Errorf("%d messages were published, want 3", len(got))
		}
	})
}

// silent is a broker that counts messages which it does not hand out.
type silent struct{ queue.Broker }

func (s silent) Subscribe(ctx context.Context, _ string, _ queue.SubscribeConfig) (queue.Subscription, error) {
	return s.Broker.Subscribe(ctx, "elsewhere", queue.SubscribeConfig{Lease: time.Minute, Slots: 1})
}

// What the broker counts and does not hand out, such as messages on their way back from another look, makes a look incomplete.
func TestSilentQueueIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, func(b queue.Broker) queue.Broker { return silent{b} }, brokerdlq.Config{})
		if err := b.CreateQueue(t.Context(), "elsewhere"); err != nil {
			t.Fatal(err)
		}
		put(t, letters, jobs(t, 2)...)
		entries, scanned, err := letters.Sample(t.Context(), dlq.Filter{}, 5)
		if err != nil || len(entries) != 0 || !scanned.Incomplete {
			t.Errorf("%d entries, %+v, %v: want an incomplete look", len(entries), scanned, err)
		}
	})
}

// A broker that keeps failing ends the scan with the reason.
func TestReadingFailsForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, letters := setUp(t, func(b queue.Broker) queue.Broker { return &nameless{Broker: b, failures: 1 << 30} }, brokerdlq.Config{})
		put(t, letters, jobs(t, 1)...)
		report, scanned, err := letters.Replay(t.Context(), replay.Config{})
		if !errors.Is(err, queue.ErrUnavailable) || !scanned.Incomplete {
			t.Errorf("report %+v, %+v, %v", report, scanned, err)
		}
	})
}

// unlisted is a broker that does not say which queues it has.
type unlisted struct{ queue.Broker }

func (unlisted) Queues(context.Context) ([]queue.QueueInfo, error) {
	return nil, fmt.Errorf("list queues: %w", errors.ErrUnsupported)
}

// Where the broker cannot list queues, those that the configuration names are looked after; with none there is nothing to go by.
func TestBrokerThatListsNoQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wrap := func(b queue.Broker) queue.Broker { return unlisted{b} }
		_, letters := setUp(t, wrap, brokerdlq.Config{Queues: []string{"q"}})
		put(t, letters, jobs(t, 3)...)
		if depth, err := letters.Depth(t.Context()); err != nil || len(depth.Dead) != 1 || depth.Dead[0].Count != 3 {
			t.Errorf("depth %+v, %v", depth, err)
		}
		if sample, _, err := letters.Sample(t.Context(), dlq.Filter{}, 10); err != nil || len(sample) != 3 {
			t.Errorf("sample %+v, %v", sample, err)
		}
		_, letters = setUp(t, wrap, brokerdlq.Config{})
		if _, err := letters.Depth(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error %v, want ErrUnsupported", err)
		}
	})
}

// Dead-letter queues that nobody named are not touched where only the configured ones are to be looked after.
func TestOnlyTheConfiguredQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, nil, brokerdlq.Config{Queues: []string{"q"}})
		put(t, letters, jobs(t, 2)...)
		put(t, letters, deadJob(t, "other", "theirs", 10))
		purged, scanned, err := letters.Purge(t.Context(), dlq.Filter{})
		if err != nil || purged != 2 {
			t.Errorf("purge %d, %+v, %v", purged, scanned, err)
		}
		if depth, err := b.Depth(t.Context(), "theirs.dlq"); err != nil || depth.Ready.N != 1 {
			t.Errorf("depth of another's %+v, %v", depth, err)
		}
		if purged, scanned, err = letters.Purge(t.Context(), dlq.Filter{Queue: "theirs"}); err != nil || purged != 1 {
			t.Errorf("purge by name %d, %+v, %v", purged, scanned, err)
		}
	})
}

// vanishing is a broker whose dead-letter queue "a.dlq" is deleted between the subscription and the first receive.
type vanishing struct{ queue.Broker }

func (v vanishing) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := v.Broker.Subscribe(ctx, name, cfg)
	if err == nil && name == "a.dlq" {
		return vanished{sub}, nil
	}
	return sub, err
}

type vanished struct{ queue.Subscription }

func (vanished) Receive(context.Context, int) ([]*queue.Lease, error) {
	return nil, fmt.Errorf("receive: %w", queue.ErrQueueNotFound)
}

// A queue that is deleted in the middle of a scan does not keep the scan from the others.
func TestQueueDeletedInAPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, letters := setUp(t, func(b queue.Broker) queue.Broker { return vanishing{b} }, brokerdlq.Config{})
		put(t, letters, deadJob(t, "gone", "a", 10))
		put(t, letters, jobs(t, 2)...)
		if purged, scanned, err := letters.Purge(t.Context(), dlq.Filter{}); err != nil || purged != 2 || scanned.Incomplete {
			t.Errorf("purge %d, %+v, %v", purged, scanned, err)
		}
	})
}
