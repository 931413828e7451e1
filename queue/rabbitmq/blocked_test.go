package rabbitmq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
)

func gauge(b *Broker, name string) float64 {
	for _, g := range b.Gauges() {
		if g.Name == name {
			return g.Value
		}
	}
	return -1
}

// TestBlocked has the broker stop reading after connection.blocked: case I1.
func TestBlocked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.url)
	cfg := r.config()
	cfg.URLs = []string{p.url(r.url)}
	b := r.open(cfg)
	name := r.queue(b, "blocked")
	sub := r.subscribe(b, name, 30*time.Second, 2)
	r.publish(b, name, text("source"), text("waiting"))
	source := r.receive(sub)

	p.block()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := b.Publish(ctx, name, []queue.Publication{text("1")})[0].Err
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("publish with a context of 1s on a blocked connection: error %v", err)
	}
	err = b.Publish(t.Context(), name, []queue.Publication{text("2")})[0].Err // no deadline
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "low on mem") {
		t.Errorf("publish on a blocked connection: error %v, want ErrUnavailable with the broker's reason", err)
	}
	if took := time.Since(start); took > 6*time.Second { // 2.5 s on a machine with nothing else to do
		t.Errorf("two publishes on a blocked connection took %v", took)
	}
	if err := sub.Healthy(); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a subscription while blocked: Healthy is %v, want ErrUnavailable", err)
	}
	if got := gauge(b, "blocked"); got != 1 {
		t.Errorf("gauge blocked is %v, want 1", got)
	}
	if leases, err := sub.Receive(t.Context(), 1); len(leases) > 0 || !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("Receive while blocked returned %d leases and %v, want ErrUnavailable", len(leases), err)
	}
	// A job that needs a message published keeps its lease and is not acked.
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := source.Retry(ctx, time.Second, false); err == nil {
		t.Error("a retry was confirmed while the broker reads nothing")
	}

	p.unblock()
	r.eventually(func() error { return b.Publish(t.Context(), name, []queue.Publication{text("3")})[0].Err })
	r.eventually(sub.Healthy)
	if got := gauge(b, "blocked"); got != 0 {
		t.Errorf("gauge blocked is %v, want 0", got)
	}
	r.ack(source)
	for seen := map[string]bool{}; !seen["waiting"] || !seen["3"]; {
		l := r.receive(sub)
		seen[string(l.Body)] = true
		r.ack(l)
	}
}

// TestCloseWhileBlocked ends in time although the broker reads nothing.
func TestCloseWhileBlocked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.url)
	cfg := r.config()
	cfg.URLs = []string{p.url(r.url)}
	b := r.open(cfg)
	name := r.queue(b, "close")
	sub := r.subscribe(b, name, 30*time.Second, 2)
	r.publish(b, name, text("x"))
	r.receive(sub)
	p.block()
	r.eventually(func() error {
		if gauge(b, "blocked") != 1 {
			return errors.New("not blocked yet")
		}
		return nil
	})
	published := make(chan error, 1)
	go func() {
		published <- b.Publish(context.WithoutCancel(t.Context()), name, []queue.Publication{text("y")})[0].Err
	}()
	start := time.Now()
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second { // 4 s at most on a machine with nothing else to do
		t.Errorf("Close took %v", took)
	}
	if err := <-published; err == nil {
		t.Error("a publish was confirmed by a broker that reads nothing")
	}
}

// TestHalfOpen drops all packets: nothing tells the driver, but no call waits longer than its context.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.url)
	cfg := r.config()
	cfg.URLs = []string{p.url(r.url)}
	cfg.Heartbeat = time.Second
	// Made on another connection: a slow broker must not miss heartbeats while it makes a queue.
	name := r.queue(r.open(r.config()), "halfopen")
	b := r.open(cfg)
	p.each((*proxyLink).freeze)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	big := make([]byte, 8<<20) // more than the sockets hold, so that the write itself hangs
	pubs := []queue.Publication{{Message: queue.Message{Body: big}}, text("small")}
	for i, res := range b.Publish(ctx, name, pubs) {
		if !errors.Is(res.Err, context.DeadlineExceeded) {
			t.Errorf("publish %d: error %v, want context.DeadlineExceeded", i, res.Err)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.Depth(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Depth: error %v, want context.DeadlineExceeded", err)
	}
	// Either side's heartbeats or the deadline of the write end the connections; the next ones pass.
	r.eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return b.Publish(ctx, name, []queue.Publication{text("again")})[0].Err
	})
}
