package sqs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// A server that stops answering: every call ends, and nothing waits for its caller longer than the caller wants.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", time.Hour, 2)
		l := r.one(sub, time.Minute)
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Fault{Hang: true} })
		start := time.Now()
		if err := r.b.Publish(r.Context(), "jobs", texts(1))[0].Err; !errors.Is(err, queue.ErrUnavailable) || time.Since(start) > time.Minute {
			t.Errorf("publish: error %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := l.Ack(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("ack: error %v after %v", err, time.Since(start))
		}
		start = time.Now()
		if _, err := sub.Receive(r.Context(), 1); !errors.Is(err, queue.ErrUnavailable) || time.Since(start) > 40*time.Second {
			t.Errorf("receive: error %v after %v", err, time.Since(start))
		}
		r.from(nil)
		if err := l.Ack(r.Context()); err != nil {
			t.Errorf("ack once it answers: %v", err)
		}
	})
}

// Close does not wait for ever for a server that hangs, and says what that means.
func TestCloseWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		b := open(t, r.cfg)
		if _, err := b.Depth(r.Context(), "jobs"); err != nil {
			t.Fatal(err)
		}
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Fault{Hang: true} })
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.Publish(r.Context(), "jobs", texts(1))[0].Err; !errors.Is(err, queue.ErrUnavailable) {
				t.Errorf("publish: error %v", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := b.Close(); !errors.Is(err, queue.ErrUnavailable) || time.Since(start) > 7*time.Second {
			t.Errorf("close: error %v after %v", err, time.Since(start))
		}
		wg.Wait()
		r.from(nil)
	})
}

// An extension that was not answered in time cannot overtake the settlement that follows.
func TestLateExtensionDoesNotOvertake(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", time.Minute, 1)
		l := r.one(sub, time.Minute)
		r.from(on("ChangeMessageVisibilityBatch", 1, sqstest.Fault{Latency: 2 * time.Second}))
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := l.Extend(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("extend: error %v", err)
		}
		if err := l.Retry(r.Context(), time.Second, false); err != nil {
			t.Fatal(err)
		}
		r.arrives(sub, time.Second)
	})
}
