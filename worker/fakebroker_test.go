package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

// fakeBroker is a networked broker in memory, for what the embedded one does not have: FIFO groups, limits of delay, size and lease, handles
// that stay good while the message is out a second time, and outages. Time is that of the bubble.
type fakeBroker struct {
	caps queue.Capabilities
	// ceiling ends each lease so long after its receive. Extensions beyond it are refused, not clamped, and counted.
	ceiling time.Duration
	inspect func(name string, use inspect.Use) ([]inspect.Finding, error)

	mu       sync.Mutex
	down     error
	queues   map[string][]*fakeMessage
	next     int
	seen     int           // how often what is published was handed over already
	changed  chan struct{} // closed at each change
	extended []time.Time
	refused  int
	settled  []queue.Settlement
	open     int // subscriptions
	early    int // releases while a subscription might still get the message
}

type fakeMessage struct {
	queue.Message
	id, group string
	visible   time.Time
	received  int
	attempts  int
	gone      bool
}

func newFakeBroker(caps queue.Capabilities) *fakeBroker {
	caps.Name = "fake"
	return &fakeBroker{caps: caps, queues: map[string][]*fakeMessage{}, changed: make(chan struct{})}
}

func (b *fakeBroker) Capabilities(string) queue.Capabilities { return b.caps }
func (b *fakeBroker) Close() error                           { return nil }

func (b *fakeBroker) Inspect(_ context.Context, name string, use inspect.Use) ([]inspect.Finding, error) {
	if b.inspect == nil {
		return nil, nil
	}
	return b.inspect(name, use)
}

// setDown makes every call fail with err, or work again.
func (b *fakeBroker) setDown(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = err
	b.note()
}

func (b *fakeBroker) note() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *fakeBroker) CreateQueue(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down == nil && b.queues[name] == nil {
		b.queues[name] = []*fakeMessage{}
	}
	return b.down
}

func (b *fakeBroker) Queues(context.Context) ([]queue.QueueInfo, error) { return nil, nil }

func (b *fakeBroker) Depth(_ context.Context, name string) (d queue.Depth, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.Ready = queue.CountOf(int64(len(b.queues[name])))
	return d, b.down
}

func (b *fakeBroker) Publish(_ context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	results := make([]queue.PublishResult, len(pubs))
	for i, p := range pubs {
		switch longest := b.caps.MaxDelay; {
		case b.down != nil:
			results[i].Err = b.down
		case b.caps.FIFO && p.Delay > 0:
			results[i].Err = fmt.Errorf("a FIFO queue takes no delay of a message's own: %w", queue.ErrDelayTooLong)
		case longest > 0 && p.Delay > longest:
			results[i].Err = queue.ErrDelayTooLong
		default:
			b.next++
			m := &fakeMessage{Message: p.Message, id: strconv.Itoa(b.next), group: p.Group, visible: time.Now().Add(p.Delay), received: b.seen}
			b.queues[name] = append(b.queues[name], m)
			results[i].ID = m.id
			b.note()
		}
	}
	return results
}

// again hands the message id over once more although it is out.
func (b *fakeBroker) again(name, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.queues[name] {
		if m.id == id {
			m.visible = time.Now()
		}
	}
	b.note()
}

func (b *fakeBroker) Subscribe(_ context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down == nil {
		b.open++
	}
	return &fakeSubscription{b: b, name: name, lease: cfg.Lease}, b.down
}

type fakeSubscription struct {
	b     *fakeBroker
	name  string
	lease time.Duration
}

func (s *fakeSubscription) Healthy() error { return nil }

func (s *fakeSubscription) Close() error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.open--
	return nil
}

func (s *fakeSubscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	for {
		leases, wait, changed, err := s.take(most)
		if len(leases) > 0 || err != nil {
			return leases, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take leases what is visible: on a FIFO queue only the head of each group.
func (s *fakeSubscription) take(most int) (leases []*queue.Lease, wait time.Duration, changed chan struct{}, err error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	now, wait := time.Now(), time.Hour
	groups := map[string]bool{}
	for _, m := range s.b.queues[s.name] {
		if s.b.caps.FIFO && groups[m.group] {
			continue
		}
		groups[m.group] = true
		if until := m.visible.Sub(now); until > 0 {
			wait = min(wait, until)
			continue
		}
		if len(leases) == most {
			break
		}
		leases = append(leases, s.leaseOf(m, now))
	}
	return leases, wait, s.b.changed, s.b.down
}

func (s *fakeSubscription) leaseOf(m *fakeMessage, now time.Time) *queue.Lease {
	m.received++
	m.attempts++
	m.visible = now.Add(s.lease)
	l := queue.NewLease(m.Message, &fakeHandle{s: s, m: m, since: now}, m.visible)
	l.Queue, l.ID, l.DeliveryCount, l.EnqueuedAt = s.name, m.id, m.received, now
	if s.b.caps.CountsAttempts {
		l.Attempts = m.attempts
	}
	if s.b.caps.FIFO {
		l.Group = m.group
	}
	if s.b.ceiling > 0 {
		l.Ceiling = now.Add(s.b.ceiling)
	}
	return l
}

// fakeHandle stays good until the message is gone, however often it was handed over since.
type fakeHandle struct {
	s     *fakeSubscription
	m     *fakeMessage
	since time.Time
}

func (h *fakeHandle) Extend(_ context.Context, d time.Duration) error {
	b := h.s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.ceiling > 0 && now.Add(d).After(h.since.Add(b.ceiling)) {
		b.refused++
		return fmt.Errorf("total visibility beyond %s", b.ceiling)
	}
	if h.m.gone {
		return queue.ErrLeaseLost
	}
	b.extended = append(b.extended, now)
	h.m.visible = now.Add(d)
	return nil
}

func (h *fakeHandle) Settle(_ context.Context, s queue.Settlement) error {
	b := h.s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.note()
	b.settled = append(b.settled, s)
	if s.Action == queue.ActionRelease && b.open > 0 {
		b.early++
	}
	if s.Action == queue.ActionAck {
		h.m.gone = true
		b.queues[h.s.name] = slices.DeleteFunc(b.queues[h.s.name], func(m *fakeMessage) bool { return m == h.m })
		return nil
	}
	if s.Uncharged {
		h.m.attempts--
	}
	h.m.visible = time.Now().Add(s.Delay)
	if last := h.since.Add(b.ceiling); b.ceiling > 0 && h.m.visible.After(last) {
		h.m.visible = last // as a driver does: the ledger remembers what was asked for
	}
	return nil
}

// extensions returns when leases were extended.
func (b *fakeBroker) extensions() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.extended)
}

// settlements returns what was settled, and how many extensions were refused.
func (b *fakeBroker) settlements() ([]queue.Settlement, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.settled), b.refused
}
