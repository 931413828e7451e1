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

// refusals lists settlements and sends that the server refused.
func (r *rig) refusals() (list []string) {
	for _, action := range []string{"SendMessageBatch", "ChangeMessageVisibilityBatch"} {
		for _, c := range r.seen(action) {
			in := decoded[struct {
				Entries []struct{ DelaySeconds, VisibilityTimeout int }
			}](r, c)
			for _, e := range in.Entries {
				if e.DelaySeconds > 900 || e.VisibilityTimeout > 43200 {
					list = append(list, action)
				}
			}
		}
	}
	return list
}

// arrives waits for one message and checks when it comes.
func (r *rig) arrives(sub queue.Subscription, after time.Duration) *queue.Lease {
	r.Helper()
	start := time.Now()
	l := r.one(sub, after+time.Hour)
	if took := time.Since(start); took < after || took > after+3*time.Second {
		r.Errorf("the message came after %v, want %v", took, after)
	}
	return l
}

// Field case F1: a backoff of 12 h for a job that has run for a minute goes beyond what is left of the lease.
func TestBackoffBeyondTheCeiling(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", 30*time.Second, 1)
		l := r.one(sub, time.Minute)
		for range 6 {
			time.Sleep(10 * time.Second)
			if err := l.Extend(r.Context(), 30*time.Second); err != nil {
				r.Fatal(err)
			}
		}
		r.from(nil)
		if err := l.Retry(r.Context(), 12*time.Hour, false); err != nil {
			r.Fatal(err)
		}
		again := r.arrives(sub, 12*time.Hour)
		if again.Attempts != 2 || again.ID != l.ID || !again.EnqueuedAt.Equal(l.EnqueuedAt) {
			r.Errorf("attempt %d of message %s enqueued at %v, want 2 of %s at %v", again.Attempts, again.ID, again.EnqueuedAt, l.ID, l.EnqueuedAt)
		}
		if list := r.refusals(); len(list) > 0 {
			r.Errorf("asked for more than SQS takes: %v", list)
		}
		if err := again.Ack(r.Context()); err != nil {
			r.Fatal(err)
		}
		if left := r.server.Messages("jobs"); len(left) > 0 {
			r.Errorf("left: %+v", left)
		}
	})
}

// What fits in the twelve hours takes one request and no second message.
func TestBackoffByVisibility(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", 30*time.Second, 1)
		l := r.one(sub, time.Minute)
		r.from(nil)
		if err := l.Retry(r.Context(), 11*time.Hour, false); err != nil {
			r.Fatal(err)
		}
		if a, b, c := len(r.seen("ChangeMessageVisibilityBatch")), len(r.seen("SendMessageBatch")), len(r.seen("DeleteMessageBatch")); a != 1 || b+c != 0 {
			r.Errorf("%d changes, %d sends, %d deletes", a, b, c)
		}
		if again := r.arrives(sub, 11*time.Hour); again.Attempts != 2 {
			r.Errorf("attempt %d, want 2", again.Attempts)
		}
	})
}

// On a FIFO queue there are no copies: the delay is cut to what is left.
func TestFIFOBackoffIsClamped(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs.fifo", texts(1)...)
		sub := r.subscribe("jobs.fifo", 5*time.Minute, 1)
		l := r.one(sub, time.Minute)
		time.Sleep(time.Minute)
		if err := l.Retry(r.Context(), 12*time.Hour, true); err != nil {
			r.Fatal(err)
		}
		r.arrives(sub, 12*time.Hour-time.Minute-3*time.Second) // with a margin for the way
	})
}

// Field case F2: a deferral far beyond 15 minutes and 12 hours, with three workers. It comes once, when it is due, and has cost no attempt.
func TestLongDeferralRunsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		subs := []queue.Subscription{
			r.subscribe("jobs", 30*time.Second, 5), r.subscribeTo(r.open(), "jobs", 30*time.Second, 5), r.subscribeTo(r.open(), "jobs", 30*time.Second, 5),
		}
		l := r.one(subs[0], time.Minute)
		const delay = 26 * time.Hour
		due := time.Now().Add(delay)
		r.from(nil)
		if err := l.Retry(r.Context(), delay, true); err != nil {
			r.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(r.Context(), delay+time.Hour)
		defer cancel()
		var mu sync.Mutex
		var got []*queue.Lease
		var wg sync.WaitGroup
		for _, sub := range subs {
			wg.Go(func() {
				for {
					leases, err := sub.Receive(ctx, 5)
					if err != nil {
						return
					}
					mu.Lock()
					got = append(got, leases...)
					mu.Unlock()
					if late := time.Since(due); late < 0 || late > 2*time.Second {
						r.Errorf("it came %v after it was due", late)
					}
					for _, l := range leases {
						if err := l.Ack(context.WithoutCancel(ctx)); err != nil {
							r.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		if len(got) != 1 || got[0].Attempts != 1 || got[0].ID != l.ID || string(got[0].Body) != "message 0" {
			r.Fatalf("%d deliveries: %+v", len(got), got)
		}
		if list := r.refusals(); len(list) > 0 {
			r.Errorf("asked for more than SQS takes: %v", list)
		}
		if n := len(r.seen("SendMessageBatch")); n > 6 {
			r.Errorf("%d sends for a delay of %v", n, delay)
		}
	})
}

func TestDelayOfPublication(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		long := texts(1)
		long[0].Delay = 15*time.Minute + time.Millisecond
		if err := r.b.Publish(r.Context(), "jobs", long)[0].Err; !errors.Is(err, queue.ErrDelayTooLong) {
			r.Errorf("error %v, want ErrDelayTooLong", err)
		}
		long[0].Delay = time.Second
		if err := r.b.Publish(r.Context(), "jobs.fifo", long)[0].Err; !errors.Is(err, queue.ErrDelayTooLong) {
			r.Errorf("FIFO: error %v, want ErrDelayTooLong", err)
		}
		exact := texts(1)
		exact[0].Delay = 1500 * time.Millisecond
		r.publish("jobs", exact...)
		r.arrives(r.subscribe("jobs", time.Minute, 1), 2*time.Second) // rounded up: never early
	})
}

// retries retries one message n times and returns how it went on.
func (r *rig) retries(name string, n int, delay time.Duration) (copies int) {
	r.Helper()
	r.publish(name, texts(1)...)
	sub := r.subscribe(name, time.Minute, 1)
	r.from(nil)
	for i := range n {
		l := r.one(sub, delay+time.Hour)
		if l.Attempts != i+1 || l.DeliveryCount != i+1 {
			r.Fatalf("attempt %d, delivery %d, want %d", l.Attempts, l.DeliveryCount, i+1)
		}
		if err := l.Retry(r.Context(), delay, false); err != nil {
			r.Fatal(err)
		}
	}
	l := r.one(sub, delay+time.Hour)
	if l.Attempts != n+1 || l.DeliveryCount != n+1 {
		r.Errorf("attempt %d, delivery %d, want %d", l.Attempts, l.DeliveryCount, n+1)
	}
	r.ackAll([]*queue.Lease{l})
	if left := r.server.Messages(name); len(left) > 0 {
		r.Errorf("left: %+v", left)
	}
	return len(r.seen("SendMessageBatch"))
}

// Two receives below maxReceiveCount a message goes on as a copy, so that SQS does not take it for poison.
func TestRetryNearMaxReceiveCount(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{MaxReceiveCount: 5}, func(r *rig) {
		if copies := r.retries("jobs", 12, time.Minute); copies != 4 {
			r.Errorf("%d copies for 12 retries with a maxReceiveCount of 5, want 4", copies)
		}
		if dead := r.server.Messages("jobs-dlq"); len(dead) > 0 {
			r.Errorf("moved to the DLQ: %+v", dead)
		}
	})
}

// A queue drops what is old, however often it was retried; a copy is young again.
func TestRetriesOutliveTheRetention(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.set("jobs", map[string]string{"MessageRetentionPeriod": "172800"})
		if copies := r.retries("jobs", 6, 11*time.Hour); copies == 0 { // 66 hours in a queue that keeps messages for 48
			r.Error("no copies")
		}
	})
}

// Hidden messages are in flight: near the quota they are put back as copies.
func TestRetryNearTheInFlightQuota(t *testing.T) {
	t.Parallel()
	for share, want := range map[string]int{"59999": 0, "60000": 3} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.set("jobs", map[string]string{"ApproximateNumberOfMessagesNotVisible": share})
			time.Sleep(31 * time.Second) // what is known of the queue is no older
			_ = r.b.Gauges()             // and is refreshed when it is used
			synctest.Wait()
			if copies := r.retries("jobs", 3, time.Minute); copies != want {
				r.Errorf("%d copies with %s messages in flight, want %d", copies, share, want)
			}
			if g := gauge(r, r.b, "in_flight_share"); g < 0.49 || g > 0.51 {
				r.Errorf("gauge in_flight_share is %v", g)
			}
		})
	}
}

// A copy is confirmed before the message is deleted, and is not sent twice when only the delete fails.
func TestCopyThenDelete(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", time.Minute, 1)
		l := r.one(sub, time.Minute)
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Throttled })
		if err := l.Release(r.Context()); !errors.Is(err, queue.ErrUnavailable) || len(r.seen("DeleteMessageBatch")) != 0 {
			r.Fatalf("error %v and %d deletes, want ErrUnavailable and none: the copy was not confirmed", err, len(r.seen("DeleteMessageBatch")))
		}
		r.from(on("DeleteMessageBatch", 3, sqstest.Throttled))
		if err := l.Release(r.Context()); !errors.Is(err, queue.ErrUnavailable) {
			r.Fatalf("error %v, want ErrUnavailable", err)
		}
		if err := l.Release(r.Context()); err != nil {
			r.Fatal(err)
		}
		if n := len(r.server.Messages("jobs")); n != 1 || len(r.seen("SendMessageBatch")) != 1 {
			r.Errorf("%d messages after %d sends, want one of each", n, len(r.seen("SendMessageBatch")))
		}
		if again := r.one(sub, time.Minute); again.Attempts != 1 || again.DeliveryCount != 2 {
			r.Errorf("attempt %d, delivery %d; want 1 and 2", again.Attempts, again.DeliveryCount)
		}
	})
}

// A lease that is about to end is extended before a copy is sent: nobody else may get the message between copy and delete.
func TestCopyExtendsAShortLease(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		l := r.one(r.subscribe("jobs", 6*time.Second, 1), time.Minute)
		time.Sleep(4 * time.Second)
		r.from(on("SendMessageBatch", 1, sqstest.Fault{Latency: 4 * time.Second}))
		if err := l.Release(r.Context()); err != nil {
			r.Fatal(err)
		}
		if left := r.server.Messages("jobs"); len(left) != 1 || left[0].Receives != 0 {
			r.Errorf("left: %+v, want only the copy", left)
		}
	})
}

// A copy whose answer comes after the settlement's context has ended is not sent a second time.
func TestLateAnswerIsNoSecondCopy(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		l := r.one(r.subscribe("jobs", time.Minute, 1), time.Minute)
		r.from(on("SendMessageBatch", 1, sqstest.Fault{Linger: 3 * time.Second}))
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := l.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			r.Fatalf("error %v, want DeadlineExceeded", err)
		}
		if err := l.Release(r.Context()); err != nil {
			r.Fatal(err)
		}
		if n := len(r.server.Messages("jobs")); n != 1 {
			r.Errorf("%d messages, want only the copy", n)
		}
	})
}

// A hop whose delete fails for longer than one call lasts does not double the message.
func TestHopDeletesInTheEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", time.Minute, 1)
		if err := r.one(sub, time.Minute).Retry(r.Context(), 20*time.Minute, true); err != nil {
			r.Fatal(err)
		}
		r.from(on("DeleteMessageBatch", 7, sqstest.Throttled))
		l := r.one(sub, time.Hour)
		if l.Attempts != 1 || l.DeliveryCount != 2 {
			r.Errorf("attempt %d, delivery %d; want 1 and 2", l.Attempts, l.DeliveryCount)
		}
		if n, deletes := len(r.server.Messages("jobs")), len(r.seen("DeleteMessageBatch")); n != 1 || deletes != 8 {
			r.Errorf("%d messages after %d deletes, want 1 after 8", n, deletes)
		}
	})
}
