package queuetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// headerNumber carries a message's number within a case, so that deliveries can be told apart.
const headerNumber = "number"

// env is what a case works with: a broker over fresh storage and one queue. Its helpers fail the test.
type env struct {
	testing.TB
	h      Harness
	open   func() queue.Broker
	broker queue.Broker
	queue  string
}

func newEnv(t testing.TB, h Harness) *env {
	t.Helper()
	e := &env{TB: t, h: h, open: h.New(t)}
	e.broker = e.openBroker()
	e.queue = e.newQueue("main")
	return e
}

// openBroker opens the storage once more.
func (e *env) openBroker() queue.Broker {
	e.Helper()
	b := e.open()
	e.Cleanup(func() {
		if err := b.Close(); err != nil {
			e.Errorf("close broker: %v", err)
		}
	})
	return b
}

// name returns a queue name that nobody used before.
func (e *env) name(base string) string {
	return e.h.QueueName("conformance-" + base + "-" + randomHex())
}

func (e *env) newQueue(base string) string {
	e.Helper()
	name := e.name(base)
	if err := e.broker.CreateQueue(e.Context(), name); err != nil {
		e.Fatalf("CreateQueue(%q): %v", name, err)
	}
	return name
}

// waitCtx bounds something that must happen: extra is the lease or delay that has to pass first.
func (e *env) waitCtx(extra time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.Context(), e.h.Wait+extra)
}

// subscribe takes messages with the given lease.
func (e *env) subscribe(lease time.Duration, slots int) queue.Subscription {
	e.Helper()
	return e.subscribeTo(e.broker, e.queue, lease, slots)
}

func (e *env) subscribeTo(b queue.Broker, name string, lease time.Duration, slots int) queue.Subscription {
	e.Helper()
	sub, err := b.Subscribe(e.Context(), name, queue.SubscribeConfig{Lease: lease, Slots: slots})
	if err != nil {
		e.Fatalf("Subscribe(%q): %v", name, err)
	}
	e.Cleanup(func() {
		if err := sub.Close(); err != nil {
			e.Errorf("close subscription: %v", err)
		}
	})
	return sub
}

// numbered makes n messages that carry their number as body and header. Each has a group of its own, so that brokers
// with groups deliver them independently, and an id of its own, so that none is a duplicate of what another call made.
func numbered(n int) []queue.Publication {
	pubs := make([]queue.Publication, n)
	call := randomHex()
	for i := range pubs {
		number := fmt.Sprint(i)
		pubs[i] = queue.Publication{
			Message: queue.Message{Body: []byte("message " + number), Headers: map[string]string{headerNumber: number}},
			Group:   "group-" + call + "-" + number,
			DedupID: call + "-" + number,
		}
	}
	return pubs
}

func randomHex() string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// publish stores pubs and fails unless each is confirmed.
func (e *env) publish(pubs ...queue.Publication) {
	e.Helper()
	if err := publishAll(e.Context(), e.broker, e.queue, pubs); err != nil {
		e.Fatal(err)
	}
}

func publishAll(ctx context.Context, b queue.Broker, name string, pubs []queue.Publication) error {
	results := b.Publish(ctx, name, pubs)
	if len(results) != len(pubs) {
		return fmt.Errorf("Publish of %d messages returned %d results", len(pubs), len(results))
	}
	for i, r := range results {
		if r.Err != nil {
			return fmt.Errorf("Publish: message %d of %d: %w", i, len(pubs), r.Err)
		}
	}
	return nil
}

// receive waits for exactly one message.
func (e *env) receive(sub queue.Subscription, extra time.Duration) *queue.Lease {
	e.Helper()
	return e.collect(sub, 1, extra)[0]
}

// collect waits until n messages were received, n calls or fewer.
func (e *env) collect(sub queue.Subscription, n int, extra time.Duration) []*queue.Lease {
	e.Helper()
	ctx, cancel := e.waitCtx(extra)
	defer cancel()
	var got []*queue.Lease
	for len(got) < n {
		leases, err := receiveSome(ctx, sub, n-len(got))
		if err != nil {
			e.Fatalf("Receive: got %d of %d messages: %v", len(got), n, err)
		}
		got = append(got, leases...)
	}
	return got
}

// receiveSome calls Receive until it returns leases, and checks the promises on its results.
func receiveSome(ctx context.Context, sub queue.Subscription, most int) ([]*queue.Lease, error) {
	for {
		leases, err := sub.Receive(ctx, most)
		switch {
		case errors.Is(err, queue.ErrUnavailable) && ctx.Err() == nil:
			continue // temporary; the driver paces the calls
		case err != nil && len(leases) > 0:
			return nil, fmt.Errorf("Receive returned %d leases together with error %w", len(leases), err)
		case err != nil:
			return nil, err
		case len(leases) == 0:
			return nil, errors.New("Receive returned neither leases nor an error")
		case len(leases) > most:
			return nil, fmt.Errorf("Receive(max %d) returned %d leases", most, len(leases))
		}
		return leases, nil
	}
}

// nothing asserts that no message shows up for d.
func (e *env) nothing(sub queue.Subscription, d time.Duration) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), d)
	defer cancel()
	leases, err := receiveSome(ctx, sub, 1)
	if len(leases) > 0 {
		e.Fatalf("Receive returned message %s (body %.40q), want none", leases[0].Headers[headerNumber], leases[0].Body)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		e.Fatalf("Receive with a context that ended: error %v, want context.DeadlineExceeded", err)
	}
}

// ack settles leases.
func (e *env) ack(leases ...*queue.Lease) {
	e.Helper()
	for _, l := range leases {
		if err := l.Ack(e.Context()); err != nil {
			e.Fatalf("Ack of message %s: %v", l.Headers[headerNumber], err)
		}
	}
}

// notBefore asserts that now is not earlier than at.
func (e *env) notBefore(what string, at time.Time) {
	e.Helper()
	if early := time.Until(at); early > e.h.Early {
		e.Fatalf("%s came back %v too early", what, early)
	}
}

// wantErr asserts that err matches target.
func (e *env) wantErr(what string, err, target error) {
	e.Helper()
	if !errors.Is(err, target) {
		e.Errorf("%s: error %v, want %v", what, err, target)
	}
}

// eventually polls check until it returns nil.
func (e *env) eventually(check func() error) {
	e.Helper()
	end := time.Now().Add(e.h.Wait)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			e.Fatalf("still not true after %v: %v", e.h.Wait, err)
		}
		time.Sleep(e.h.Poll)
	}
}
