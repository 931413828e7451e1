package queuetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// memStore is the storage of memBroker: it outlives the brokers that are opened over it.
type memStore struct {
	mu      sync.Mutex
	queues  map[string][]*memMessage
	lastID  int
	changed chan struct{} // closed and replaced at each change
	faults  memFaults

	fifo  bool
	dedup map[string]time.Time // when a DedupID was last stored

	session int       // one more after each cut
	tags    int       // given out in this session
	down    time.Time // until then nothing can be reached
}

type memMessage struct {
	queue.Message
	id, group  string
	enqueued   time.Time
	visible    time.Time // when it can be received; the deadline while it is leased
	order      int
	leased     bool
	generation int // one more for each lease: a stale handle has an older one
	tag        int // of the newest lease, within its session
	deliveries int
	attempts   int
}

func newMemStore(f memFaults) *memStore {
	return &memStore{queues: map[string][]*memMessage{}, changed: make(chan struct{}), faults: f, dedup: map[string]time.Time{}}
}

// change wakes every waiting receive. The caller holds mu.
func (s *memStore) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func memCapabilities(fifo bool) queue.Capabilities {
	c := queue.Capabilities{
		Name: "memory", MaxDelay: time.Hour, MaxRetryDelay: 90 * time.Minute, MaxLease: 2 * time.Hour, MaxBody: 2 << 20, Ordered: true, CountsAttempts: true,
		SingleHost: true, Depth: queue.DepthFieldReady | queue.DepthFieldInFlight,
	}
	if fifo {
		c.FIFO, c.Ordered, c.CountsAttempts, c.MaxDelay = true, false, false, 0
		c.Depth |= queue.DepthFieldDelayed
	}
	return c
}

// memBroker is the smallest broker that keeps the whole contract, with switches that break it.
type memBroker struct {
	*memStore
	mu     sync.Mutex
	closed bool
	done   chan struct{}
}

func openMem(s *memStore) *memBroker { return &memBroker{memStore: s, done: make(chan struct{})} }

func (b *memBroker) Capabilities(string) queue.Capabilities {
	c := memCapabilities(b.fifo)
	if b.faults.declaresLess {
		c.Ordered = false
	}
	return c
}

func (b *memBroker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *memBroker) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.done)
		if b.faults.loseOnReopen {
			b.memStore.mu.Lock()
			defer b.memStore.mu.Unlock()
			clear(b.queues)
		}
	}
	return nil
}

// check returns why queue name cannot be used. The caller holds the store's mu.
func (b *memBroker) check(name string) error {
	if b.isClosed() {
		return queue.ErrClosed
	}
	if b.isDown() {
		return queue.ErrUnavailable
	}
	if _, ok := b.queues[name]; !ok {
		return queue.ErrQueueNotFound
	}
	return nil
}

func (b *memBroker) CreateQueue(_ context.Context, name string) error {
	b.memStore.mu.Lock()
	defer b.memStore.mu.Unlock()
	if b.isClosed() {
		return queue.ErrClosed
	}
	if _, ok := b.queues[name]; !ok || b.faults.createTruncates {
		b.queues[name] = nil
	}
	return nil
}

func (b *memBroker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	b.memStore.mu.Lock()
	defer b.memStore.mu.Unlock()
	defer b.change()
	results := make([]queue.PublishResult, len(pubs))
	failed := error(nil)
	for i, p := range pubs {
		err := cmp.Or(ctx.Err(), b.check(name), b.checkPublication(p))
		if err == nil && !b.faults.batchFailsWhole || err == nil && failed == nil {
			if !b.duplicate(p) {
				results[i].ID = b.store(name, p)
			}
			continue
		}
		failed = cmp.Or(err, failed)
		results[i].Err = fmt.Errorf("publish: %w", failed)
	}
	return results
}

func (b *memBroker) checkPublication(p queue.Publication) error {
	if most := memCapabilities(b.fifo).MaxBody; len(p.Body) > most && !b.faults.acceptsTooLarge {
		return &queue.TooLargeError{Size: len(p.Body), Limit: most}
	}
	if p.Delay > memCapabilities(b.fifo).MaxDelay && !b.faults.cutsDelay {
		return queue.ErrDelayTooLong
	}
	return nil
}

func (b *memBroker) store(name string, p queue.Publication) string {
	b.lastID++
	now := time.Now()
	if b.faults.ignoresDelay {
		p.Delay = 0
	}
	m := &memMessage{
		Message: queue.Message{Body: b.faults.mangle(slices.Clone(p.Body)), Headers: maps.Clone(p.Headers)},
		id:      strconv.Itoa(b.lastID), group: p.Group, enqueued: now, visible: now.Add(max(0, p.Delay)), order: b.lastID,
	}
	if b.faults.dropsHeaders {
		delete(m.Headers, "tracestate")
	}
	b.queues[name] = append(b.queues[name], m)
	return m.id
}

func (b *memBroker) Depth(_ context.Context, name string) (queue.Depth, error) {
	b.memStore.mu.Lock()
	defer b.memStore.mu.Unlock()
	if err := b.check(name); err != nil {
		return queue.Depth{}, err
	}
	return b.depth(name), nil
}

func (b *memBroker) depth(name string) queue.Depth {
	d := queue.Depth{Ready: queue.CountOf(0), InFlight: queue.CountOf(0)}
	if b.faults.zeroForUnknown || b.fifo {
		d.Delayed = queue.CountOf(0)
	}
	for _, m := range b.queues[name] {
		switch {
		case !m.visible.After(time.Now()):
			d.Ready.N++
		case m.leased, b.fifo: // hidden by its lease
			d.InFlight.N++
		}
	}
	return d
}

func (b *memBroker) Queues(context.Context) ([]queue.QueueInfo, error) {
	b.memStore.mu.Lock()
	defer b.memStore.mu.Unlock()
	if b.isClosed() {
		return nil, queue.ErrClosed
	}
	var infos []queue.QueueInfo
	for _, name := range slices.Sorted(maps.Keys(b.queues)) {
		infos = append(infos, queue.QueueInfo{Name: name, Depth: b.depth(name)})
	}
	return infos, nil
}
