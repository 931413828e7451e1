package rabbitmq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// Broker keeps queues in RabbitMQ. It implements [queue.Broker] and is safe for concurrent use.
type Broker struct {
	cfg      Config
	topology *topology
	maxLease time.Duration

	sending *link // publishes, and nothing else
	consume *link // subscriptions and questions
	pub     *publisher
	delays  delays
	noOld   atomic.Bool // delays of older versions were looked for and not found

	management *management // nil if there is none

	idBase string // makes message ids unique among processes
	ids    atomic.Uint64

	stop  context.CancelFunc // ends the links and the publisher
	links sync.WaitGroup
	subs  sync.WaitGroup // goroutines of subscriptions

	mu     sync.Mutex
	closed bool
	calls  int           // under way
	idle   chan struct{} // closed when closed and no calls are under way
	done   chan struct{} // closed when Close is over
	known  map[string]struct{}
	stuck  map[string]int64 // messages stuck in dead-lettering, by queue
	all    map[*subscription]struct{}
	life   context.Context
}

var _ queue.Broker = (*Broker)(nil)

// Open connects to the broker. While it cannot be reached, Open tries again until ctx is done; what no waiting can mend (credentials,
// virtual host, a queue that is declared otherwise) is an error at once.
//
// Open takes four round trips. It declares nothing: what a queue or a delay needs is declared when it is first used.
func Open(ctx context.Context, cfg Config) (*Broker, error) {
	cfg = cfg.WithDefaults()
	addresses, err := cfg.validate()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	b := &Broker{
		cfg: cfg, topology: newTopology(cfg), maxLease: cfg.maxLease(), idBase: newIDBase(),
		idle: make(chan struct{}), done: make(chan struct{}),
		known: make(map[string]struct{}), all: make(map[*subscription]struct{}),
	}
	b.life, b.stop = context.WithCancel(context.Background())
	b.sending = newLink(cfg, addresses, "publish")
	b.consume = newLink(cfg, addresses, "consume")
	b.pub = newPublisher(b.sending, cfg.Window, b.delays.forget)
	b.links.Go(func() { b.sending.run(b.life) })
	b.links.Go(func() { b.consume.run(b.life) })
	b.links.Go(func() { b.pub.run(b.life) })
	if b.management = newManagement(cfg, addresses[0]); b.management != nil {
		b.links.Go(func() { b.poll(b.life) })
	}
	for _, l := range []*link{b.sending, b.consume} {
		if err := l.first(ctx); err != nil {
			_ = b.Close() //nolint:contextcheck // it bounds itself; nothing was accepted yet
			return nil, fmt.Errorf("rabbitmq: %w", err)
		}
	}
	return b, nil
}

func newIDBase() string {
	var random [9]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:]) + "-"
}

func (b *Broker) newID() string { return b.idBase + strconv.FormatUint(b.ids.Add(1), 36) }

// Capabilities implements [queue.Broker].
func (b *Broker) Capabilities(name string) queue.Capabilities { return b.cfg.Capabilities(name) }

// enter begins a call, which Close waits for; false once the broker is closed.
func (b *Broker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.calls++
	return true
}

func (b *Broker) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls--; b.calls == 0 && b.closed {
		close(b.idle)
	}
}

func (b *Broker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// blocking returns why the broker takes no messages, or "", and a channel that is closed when that changes.
func (b *Broker) blocking() (string, <-chan struct{}) {
	s, _, changed := b.sending.state()
	if s == nil {
		return "", changed
	}
	return s.blocking()
}

// learn remembers that a queue exists.
func (b *Broker) learn(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[name] = struct{}{}
}

func (b *Broker) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, name)
}

func (b *Broker) knows(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.known[name]
	return ok
}

func (b *Broker) knownNames() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.known))
}

// Subscribe implements [queue.Broker]. While the broker cannot be reached it tries again until ctx is done.
func (b *Broker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	if cfg.Lease <= 0 {
		cfg.Lease = queue.DefaultLease
	}
	if b.maxLease > 0 && cfg.Lease > b.maxLease {
		return nil, fmt.Errorf("subscribe to %q: lease %v exceeds %v, which the broker's consumer_timeout allows: shorten it, or raise both",
			name, cfg.Lease, b.maxLease)
	}
	if !b.enter() {
		return nil, fmt.Errorf("subscribe to %q: %w", name, queue.ErrClosed)
	}
	defer b.leave()
	if err := b.topology.check(name); err != nil {
		return nil, err
	}
	s := newSubscription(b, name, cfg)
	c, err := s.open(ctx, false)
	for errors.Is(err, queue.ErrUnavailable) && ctx.Err() == nil {
		pause.For(ctx, firstPause)
		c, err = s.open(ctx, false)
	}
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("subscribe to %q: %w", name, err)
	}
	b.learn(name)
	b.mu.Lock()
	b.all[s] = struct{}{}
	b.mu.Unlock()
	s.set(c, nil)
	b.subs.Go(func() {
		s.run(c)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.all, s)
	})
	return s, nil
}

// outgoing addresses a message to its queue.
func (b *Broker) outgoing(full string, msg amqp.Publishing) outgoing {
	if msg.MessageId == "" {
		msg.MessageId = b.newID() // what the broker returns is matched by it
	}
	return outgoing{key: full, msg: msg}
}
