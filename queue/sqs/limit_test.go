package sqs_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// Field case D3, outgoing: the limit is the queue's own, counts attributes, and is told at enqueue.
func TestTooLargeCountsAttributes(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1 << 20, 256 << 10, 2048} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.set("jobs", map[string]string{"MaximumMessageSize": itoa(limit)})
			r.b = r.open() // which has not seen the queue yet
			pub := queue.Publication{Message: queue.Message{Body: bytes.Repeat([]byte("x"), limit-10), Headers: map[string]string{"note": strings.Repeat("y", 90)}}}
			r.from(nil)
			err := r.b.Publish(r.Context(), "jobs", []queue.Publication{pub})[0].Err
			var large *queue.TooLargeError
			if !errors.As(err, &large) || large.Size != limit+90 || large.Limit >= limit {
				t.Fatalf("limit %d: error %v, want one of %d bytes", limit, err, limit+90)
			}
			if !strings.Contains(err.Error(), "headers included") || len(r.seen("SendMessageBatch")) > 0 {
				t.Errorf("error %q after %d requests", err, len(r.seen("SendMessageBatch")))
			}
			pub.Body = pub.Body[:large.Limit-100]
			r.publish("jobs", pub) // name, type and value take 100 bytes
		})
	}
}

// Field case G1(c): a message that just fits can still be put back as a copy, and its dead letter has room for what it says of the failure.
func TestRoomForCopiesAndDeadLetters(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		env, err := queue.NewMessage(queue.Envelope{ID: "j", Kind: "k", EnqueuedAt: time.Now(), Headers: map[string]string{"quotes": strings.Repeat(`"`, 40)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		most := r.b.Capabilities("jobs").MaxBody - len("caisson"+"String"+env.Headers[queue.HeaderEnvelope])
		env.Body = bytes.Repeat([]byte("x"), most)
		r.publish("jobs", queue.Publication{Message: env})
		sub := r.subscribe("jobs", time.Minute, 1)
		for range 3 {
			if err := r.one(sub, time.Minute).Retry(r.Context(), time.Hour, true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		l := r.one(sub, time.Hour)
		if l.Attempts != 1 || !bytes.Equal(l.Body, env.Body) {
			t.Errorf("attempt %d after deferrals", l.Attempts)
		}
		dead := l.Message
		dead.Headers["caisson-error"] = strings.Repeat("e", 2000)
		r.publish("jobs.dlq", queue.Publication{Message: dead})
	})
}

// A message of somebody else that leaves no room is hidden instead of copied.
func TestNoRoomForACopy(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.set("jobs", map[string]string{"MaximumMessageSize": "1024"})
		r.b = r.open()
		r.publish("jobs", queue.Publication{Message: queue.Message{Body: bytes.Repeat([]byte("x"), 950)}})
		sub := r.subscribe("jobs", time.Minute, 1)
		if err := r.one(sub, time.Minute).Retry(r.Context(), time.Hour, true); err != nil {
			t.Fatal(err)
		}
		if l := r.arrives(sub, time.Hour); l.Attempts != 2 || len(l.Body) != 950 {
			t.Errorf("attempt %d", l.Attempts)
		}
	})
}

// A job that just fitted can be replayed: the next run's envelope is larger than the first one's. A first run may not use that room.
func TestRoomForReplays(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		env := queue.Envelope{ID: "j", Kind: "k", EnqueuedAt: time.Now()}
		publish := func(env queue.Envelope, size int) error {
			m, err := queue.NewMessage(env, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.Body = bytes.Repeat([]byte("x"), size)
			return r.b.Publish(r.Context(), "jobs", []queue.Publication{{Message: m}})[0].Err
		}
		first, err := queue.NewMessage(env, nil)
		if err != nil {
			t.Fatal(err)
		}
		most := r.b.Capabilities("jobs").MaxBody - len("caisson"+"String"+first.Headers[queue.HeaderEnvelope])
		if err := publish(env, most+1); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("a first run above the limit: error %v", err)
		}
		env.Run, env.NotBefore = 1, time.Now()
		if err := publish(env, most); err != nil {
			t.Error(err)
		}
		if err := publish(env, most+2048); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("a replay that leaves no room: error %v", err)
		}
	})
}
