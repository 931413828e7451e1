package sqs_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/brokerdlqtest"
	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// newStore returns dead letters in PostgreSQL, as a fleet on a networked broker has them.
func newStore(t *testing.T) dlq.Store {
	pool, schema := testserver.Schema(t)
	store, err := postgres.New(pool, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", ".fifo"} {
		t.Run("q"+suffix, func(t *testing.T) {
			t.Parallel()
			brokerdlqtest.Run(t, brokerdlqtest.Harness{
				Broker: func(t *testing.T) queue.Broker {
					b := open(t, realConfig(t))
					t.Cleanup(func() { _ = b.Close() })
					return b
				},
				Queue: func(t *testing.T, b queue.Broker, base string) string {
					name := base + "-" + strings.ToLower(rand.Text()[:8]) + suffix
					if err := b.CreateQueue(t.Context(), name); err != nil {
						t.Fatal(err)
					}
					return name
				},
				Store: newStore,
				Idle:  1500 * time.Millisecond,
			})
		})
	}
}

// What SQS gave up by itself comes into the store with its reason; a copy of the store's own stays until its entry is replayed. A crash between
// store and ack brings it once more, and stores nothing twice.
func TestSweepOfMaxReceiveCount(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs", "jobs.fifo"} {
		inBubble(t, sqs.Config{MaxReceiveCount: 2}, func(r *rig) {
			foreign := queue.Message{Body: []byte("no envelope"), Headers: map[string]string{"theirs": "kept"}}
			r.publish(name, queue.Publication{Message: foreign, Group: "g"})
			raw := r.raw()
			for range 3 { // by a consumer that dies each time
				_, err := raw.ReceiveMessage(r.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(name), VisibilityTimeout: 1})
				if err != nil {
					r.Fatal(err)
				}
				time.Sleep(2 * time.Second)
			}
			store := newStore(r.TB.(*testing.T))
			letters, err := brokerdlq.New(brokerdlq.Config{Broker: r.b, Queues: []string{name}})
			if err != nil {
				r.Fatal(err)
			}
			m, err := brokerdlq.NewMirror(brokerdlq.MirrorConfig{Store: store, Queues: letters})
			if err != nil {
				r.Fatal(err)
			}
			own := dlq.Entry{Job: "own", State: dlq.StateDead, Queue: name, Kind: "k", Cause: dlq.CauseExhausted, Error: "boom", Message: queue.Message{Body: []byte("own")}}
			if err := errors.Join(m.Put(r.Context(), []dlq.Entry{own})...); err != nil {
				r.Fatal(err)
			}
			if err := m.Close(); err != nil {
				r.Fatal(err)
			}
			r.from(on("DeleteMessageBatch", 100, sqstest.Fault{Status: http.StatusBadRequest, Code: "AccessDenied"}))
			if _, err := letters.Sweep(r.Context(), store); err == nil {
				r.Error("stored and not acked, and no error")
			}
			r.from(nil)
			time.Sleep(5 * time.Minute) // leases end
			report, err := letters.Sweep(r.Context(), store)
			if err != nil || report.Imported != 1 || report.Mirrored != 1 {
				r.Errorf("%s: %+v, %v", name, report, err)
			}
			list, _, err := store.List(r.Context(), dlq.Filter{Text: "maxReceiveCount"}, "", 10)
			if err != nil || len(list) != 1 || list[0].Cause != dlq.CauseBroker {
				r.Fatalf("%s: %+v, %v", name, list, err)
			}
			if got, err := store.Get(r.Context(), list[0].ID); err != nil || !cmp.Equal(got.Message, foreign) {
				r.Errorf("%s: %+v, %v", name, got.Message, err)
			}
			if left := r.server.Messages(dlqOf(name)); len(left) != 1 {
				r.Errorf("%s: left %+v, want the copy", name, left)
			}
			if n, err := store.Purge(r.Context(), dlq.Filter{Cause: dlq.CauseExhausted}); n != 1 || err != nil {
				r.Fatal(n, err)
			}
			if report, err := letters.Sweep(r.Context(), store); err != nil || report.Outdated != 1 {
				r.Errorf("%s: %+v, %v", name, report, err)
			}
		})
	}
}

// dlqOf is the name in SQS.
func dlqOf(name string) string {
	base, fifo := strings.CutSuffix(name, ".fifo")
	if fifo {
		return base + "-dlq.fifo"
	}
	return base + "-dlq"
}
