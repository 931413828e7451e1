package sqs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// Field case A2: the message is handed over again to the process that works on it. The first lease goes on, with the new receipt handle, and
// nothing keeps the message once that lease is over.
func TestDuplicateDeliveryToTheSameProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", 9*time.Second, 2)
		l := r.one(sub, time.Minute)
		time.Sleep(2 * time.Second)
		r.server.DeliverAgain("jobs")
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		if leases, err := sub.Receive(ctx, 1); err == nil {
			r.Fatalf("the duplicate was handed out: %v", leases[0].ID)
		}
		cancel()
		if n := gauge(r, r.b, "duplicates"); n != 1 {
			r.Errorf("gauge duplicates is %v, want 1", n)
		}
		if err := l.Extend(r.Context(), 9*time.Second); err != nil {
			r.Fatalf("extend after the duplicate: %v", err)
		}
		r.from(nil)
		if err := l.Retry(r.Context(), 3*time.Second, false); err != nil {
			r.Fatal(err)
		}
		again := r.arrives(sub, 3*time.Second)
		if n := len(r.seen("ChangeMessageVisibilityBatch")); n != 1 {
			r.Errorf("%d changes of visibility, want only the retry", n)
		}
		r.ackAll([]*queue.Lease{again})
		if left := r.server.Messages("jobs"); len(left) > 0 {
			r.Errorf("left: %+v", left)
		}
	})
}

// A delete with the older handle would answer success and delete nothing.
func TestNewestHandleSettles(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", time.Minute, 2)
		l := r.one(sub, time.Minute)
		r.server.DeliverAgain("jobs")
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		_, _ = sub.Receive(ctx, 1) // it finds nothing new
		r.ackAll([]*queue.Lease{l})
		if left := r.server.Messages("jobs"); len(left) > 0 {
			r.Errorf("left: %+v", left)
		}
	})
}

// Where the second delivery hides the message for less time than the lease has left, it is hidden again until then.
func TestDuplicateDoesNotShortenTheLease(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", 9*time.Second, 2)
		l := r.one(sub, time.Minute)
		if err := l.Extend(r.Context(), time.Hour); err != nil {
			r.Fatal(err)
		}
		r.server.DeliverAgain("jobs")
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Minute)
		defer cancel()
		if leases, err := sub.Receive(ctx, 1); err == nil {
			r.Fatalf("a message under a lease was handed out: %v", leases[0].ID)
		}
		r.ackAll([]*queue.Lease{l})
	})
}

// What comes again after it was settled is delivered: nobody here works on it any more.
func TestDuplicateAfterSettlement(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", time.Minute, 2)
		r.from(on("ReceiveMessage", 1, sqstest.Fault{Double: true}))
		l := r.one(sub, time.Minute)
		r.ackAll([]*queue.Lease{l})
		r.publish("jobs", texts(1)...)
		got := r.receive(sub, 2, time.Minute)
		if got[0].ID == got[1].ID || got[0].ID != l.ID && got[1].ID != l.ID {
			r.Errorf("got %s and %s, want %s again and a new one", got[0].ID, got[1].ID, l.ID)
		}
		r.ackAll(got)
	})
}

// A settlement that comes too late is not sent: SQS would say yes, or do it to somebody else's lease.
func TestLateCallsAreNotSent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs", "jobs.fifo"} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.publish(name, texts(1)...)
			l := r.one(r.subscribe(name, 9*time.Second, 1), time.Minute)
			var late queue.Handle
			l.Decorate(func(h queue.Handle) queue.Handle { late = h; return h })
			time.Sleep(10 * time.Second)
			r.from(nil)
			for _, action := range []queue.Action{queue.ActionAck, queue.ActionRetry, queue.ActionRelease} {
				for _, uncharged := range []bool{false, true} {
					if err := late.Settle(r.Context(), queue.Settlement{Action: action, Uncharged: uncharged}); !errors.Is(err, queue.ErrLeaseLost) {
						r.Errorf("%s: late %v: error %v, want ErrLeaseLost", name, action, err)
					}
				}
			}
			if err := late.Extend(r.Context(), time.Minute); !errors.Is(err, queue.ErrLeaseLost) {
				r.Errorf("%s: late extend: error %v, want ErrLeaseLost", name, err)
			}
			if n := len(r.seen("DeleteMessageBatch")) + len(r.seen("ChangeMessageVisibilityBatch")) + len(r.seen("SendMessageBatch")); n > 0 {
				r.Errorf("%s: %d requests were sent", name, n)
			}
		})
	}
}

// A handle that SQS says has expired is a lost lease.
func TestExpiredHandleIsALostLease(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs.fifo", texts(1)...)
		l := r.one(r.subscribe("jobs.fifo", time.Minute, 1), time.Minute)
		fault := sqstest.Fault{FailEntries: []int{0}, EntryCode: "ReceiptHandleIsInvalid", SenderFault: true}
		r.from(on("DeleteMessageBatch", 1, fault))
		if err := l.Ack(r.Context()); !errors.Is(err, queue.ErrLeaseLost) {
			r.Errorf("ack: error %v, want ErrLeaseLost", err)
		}
	})
}

// A message that was released can be here again before the answer to its release is: that is no duplicate, and must be handed out.
func TestReceivedAgainBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs", "jobs.fifo"} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.publish(name, texts(1)...)
			l := r.one(r.subscribe(name, time.Hour, 1), time.Minute)
			r.from(on("ChangeMessageVisibilityBatch", 1, sqstest.Fault{Lose: true, Linger: 5 * time.Second}))
			other := r.subscribe(name, time.Hour, 1)
			released := make(chan error, 1)
			go func() { released <- l.Retry(r.Context(), 0, false) }()
			again := r.one(other, 3*time.Second)
			if err := <-released; !errors.Is(err, queue.ErrLeaseLost) {
				t.Errorf("%s: the retry whose answer was lost ends with %v, want ErrLeaseLost: somebody else has the message", name, err)
			}
			r.ackAll([]*queue.Lease{again})
			if left := r.server.Messages(name); len(left) > 0 {
				t.Errorf("%s: left: %+v", name, left)
			}
		})
	}
}
