package rabbitmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
)

// testPrefix is one for all tests and runs, so that there are few queues: RabbitMQ 3 keeps three file descriptors for each quorum queue, and
// takes no more connections once those that it may have are used up. Each test has queues of its own below it.
const testPrefix = "cstest."

// serverURL is the broker that tests use. It fails the test if there is none.
func serverURL(t testing.TB) string {
	t.Helper()
	url := cmp.Or(os.Getenv("CAISSON_TEST_AMQP_URL"), "amqp://guest:guest@127.0.0.1:5672/")
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(time.Minute)})
	if err != nil {
		t.Fatalf("no RabbitMQ at CAISSON_TEST_AMQP_URL, or 127.0.0.1:5672 if that is not set: %v\nstart one with: make services", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

// rig is a broker's side of a test: names of queues that are deleted at its end, and a raw channel.
type rig struct {
	testing.TB
	url string

	mu    sync.Mutex
	names []string
}

func newRig(t testing.TB) *rig {
	r := &rig{TB: t, url: serverURL(t)}
	t.Cleanup(r.deleteQueues)
	return r
}

// name returns a queue name that nobody used before.
func (r *rig) name(base string) string {
	var random [6]byte
	_, _ = rand.Read(random[:])
	return r.owned("test-" + base + "-" + hex.EncodeToString(random[:]))
}

// owned has a queue and its dead-letter queue deleted at the end.
func (r *rig) owned(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
	return name
}

func (r *rig) deleteQueues() {
	r.raw(func(ch *amqp.Channel) {
		for _, name := range r.names {
			for _, full := range []string{testPrefix + name, testPrefix + queue.DLQ(name)} {
				if _, err := ch.QueueDelete(full, false, false, false); err != nil {
					r.Errorf("delete queue %q: %v", full, err)
				}
			}
		}
	})
}

// raw runs do with a plain channel.
func (r *rig) raw(do func(*amqp.Channel)) {
	r.Helper()
	conn, err := amqp.Dial(r.url)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		r.Fatal(err)
	}
	do(ch)
}

// rawPublish stores one message as a foreign producer would.
func (r *rig) rawPublish(name string, msg amqp.Publishing) {
	r.Helper()
	r.raw(func(ch *amqp.Channel) {
		if err := r.rawConfirmed(ch, "", testPrefix+name, msg); err != nil {
			r.Fatalf("raw publish: %v", err)
		}
	})
}

func (r *rig) rawConfirmed(ch *amqp.Channel, exchange, key string, msg amqp.Publishing) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	dc, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, msg)
	if err == nil && !dc.Wait() {
		err = errors.New("not confirmed")
	}
	return err
}

func (r *rig) config() Config {
	return Config{URLs: []string{r.url}, Prefix: testPrefix, Logger: slog.New(slog.DiscardHandler)}
}

// open opens a broker that is closed at the end.
func (r *rig) open(cfg Config) *Broker {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	b, err := Open(ctx, cfg)
	if err != nil {
		r.Fatalf("Open: %v", err)
	}
	r.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.Errorf("Close: %v", err)
		}
	})
	return b
}

// queue makes a queue.
func (r *rig) queue(b *Broker, base string) string {
	r.Helper()
	name := r.name(base)
	if err := b.CreateQueue(r.Context(), name); err != nil {
		r.Fatal(err)
	}
	return name
}

func (r *rig) subscribe(b *Broker, name string, lease time.Duration, slots int) *subscription {
	r.Helper()
	sub, err := b.Subscribe(r.Context(), name, queue.SubscribeConfig{Lease: lease, Slots: slots})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = sub.Close() })
	return sub.(*subscription)
}

func (r *rig) publish(b *Broker, name string, pubs ...queue.Publication) {
	r.Helper()
	for i, res := range b.Publish(r.Context(), name, pubs) {
		if res.Err != nil {
			r.Fatalf("publish message %d: %v", i, res.Err)
		}
	}
}

// publishSoon publishes one message after a cut, which the session of the publisher may notice only now.
func (r *rig) publishSoon(b *Broker, name string, pub queue.Publication) {
	r.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := b.Publish(r.Context(), name, []queue.Publication{pub})[0].Err
		if err == nil {
			return
		}
		if !errors.Is(err, queue.ErrUnavailable) || time.Now().After(deadline) {
			r.Fatalf("publish: %v", err)
		}
	}
}

func text(body string) queue.Publication {
	return queue.Publication{Message: queue.Message{Body: []byte(body)}}
}

// testTimeout is how long what must happen may take on a loaded machine.
const testTimeout = 2 * time.Minute

// receive waits for one message, through interruptions.
func (r *rig) receive(sub queue.Subscription) *queue.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	for {
		leases, err := sub.Receive(ctx, 1)
		if len(leases) == 1 {
			return leases[0]
		}
		if !errors.Is(err, queue.ErrUnavailable) || ctx.Err() != nil {
			r.Fatalf("Receive: %v", err)
		}
	}
}

func (r *rig) ack(leases ...*queue.Lease) {
	r.Helper()
	for _, l := range leases {
		if err := l.Ack(r.Context()); err != nil {
			r.Fatalf("Ack: %v", err)
		}
	}
}

// eventually polls until check returns nil.
func (r *rig) eventually(check func() error) {
	r.Helper()
	eventually.NoError(r, check)
}
