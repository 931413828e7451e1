package sqs_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// Field case B1: acks that wait for others to share their request reach the server before Close returns.
func TestCloseFlushesAcks(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{Linger: new(time.Second)}, func(r *rig) {
		r.publish("jobs", texts(4)...)
		leases := r.receive(r.subscribe("jobs", time.Minute, 4), 4, time.Minute)
		r.from(nil)
		start := time.Now()
		var wg sync.WaitGroup
		for _, l := range leases[:3] { // the fourth is what they wait for
			wg.Go(func() {
				if err := l.Ack(r.Context()); err != nil {
					r.Errorf("ack: %v", err)
				}
			})
		}
		synctest.Wait() // all three are waiting for more
		if n := len(r.seen("DeleteMessageBatch")); n != 0 {
			r.Fatalf("%d deletes were sent before the linger was over", n)
		}
		if err := r.b.Close(); err != nil {
			r.Fatal(err)
		}
		if left := r.server.Messages("jobs"); len(left) != 1 {
			r.Errorf("%d messages are left after Close, want the one that was not acked", len(left))
		}
		wg.Wait()
		if took := time.Since(start); took >= time.Second || len(r.seen("DeleteMessageBatch")) != 1 {
			r.Errorf("Close took %v and %d deletes", took, len(r.seen("DeleteMessageBatch")))
		}
	})
}

// The same for what was published.
func TestCloseFlushesPublishes(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{Linger: new(time.Second)}, func(r *rig) {
		var wg sync.WaitGroup
		wg.Go(func() { r.publish("jobs", texts(13)...) })
		synctest.Wait()
		if err := r.b.Close(); err != nil {
			r.Fatal(err)
		}
		if n := len(r.server.Messages("jobs")); n != 13 {
			r.Errorf("%d messages are there after Close, want 13", n)
		}
		wg.Wait()
	})
}

func TestBatchesFlushBySizeAndTime(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{Linger: new(time.Second)}, func(r *rig) {
		r.publish("jobs", texts(14)...)
		leases := r.receive(r.subscribe("jobs", time.Minute, 14), 14, time.Minute)
		r.from(nil)
		start := time.Now()
		r.ackAll(leases[:10])
		if took := time.Since(start); took > 0 || len(r.seen("DeleteMessageBatch")) != 1 {
			r.Errorf("ten acks took %v and %d requests, want one request at once", took, len(r.seen("DeleteMessageBatch")))
		}
		start = time.Now()
		r.ackAll(leases[10:13])
		if took := time.Since(start); took != time.Second || len(r.seen("DeleteMessageBatch")) != 2 {
			r.Errorf("three acks took %v and %d requests in all, want the linger and 2", took, len(r.seen("DeleteMessageBatch")))
		}
		start = time.Now()
		r.ackAll(leases[13:])
		if took := time.Since(start); took > 0 {
			r.Errorf("the last ack took %v: there is nobody to wait for", took)
		}
	})
}

// While requests are under way, what comes after them fills the next ones, also without a linger.
func TestBatchesFillUnderLoad(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{Linger: new(time.Duration(0))}, func(r *rig) {
		const n = 500
		r.publish("jobs", texts(n)...)
		leases := r.receive(r.subscribe("jobs", time.Hour, n), n, time.Minute)
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Fault{Latency: 20 * time.Millisecond} })
		r.ackAll(leases)
		if calls := len(r.seen("DeleteMessageBatch")); calls > n/10+10 {
			r.Errorf("%d acks took %d requests", n, calls)
		}
	})
}

func TestSendsAreCutByBytes(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		pubs := texts(8)
		for i := range pubs {
			pubs[i].Body = bytes.Repeat([]byte("x"), 300<<10)
		}
		r.from(nil)
		r.publish("jobs", pubs...)
		if n := len(r.seen("SendMessageBatch")); n != 3 {
			r.Errorf("8 messages of 300 KiB took %d requests, want 3", n)
		}
	})
}

// HTTP 200 with failed entries: only those are sent again, under ids of their own.
func TestPartialFailureOfSends(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs", "jobs.fifo"} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.from(on("SendMessageBatch", 1, sqstest.FailEntries(1, 3)))
			pubs := texts(5)
			r.publish(name, pubs...)
			calls := r.seen("SendMessageBatch")
			if len(calls) != 2 || calls[1].Entries != 2 {
				r.Fatalf("calls %+v, want a second one with the two entries that failed", calls)
			}
			if n := len(r.server.Messages(name)); n != 5 {
				r.Errorf("%d messages are there, want 5", n)
			}
		})
	}
}

func TestSenderFaultIsNotRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		fault := sqstest.FailEntries(1)
		fault.SenderFault, fault.EntryCode = true, "InvalidMessageContents"
		r.from(on("SendMessageBatch", 9, fault))
		results := r.b.Publish(r.Context(), "jobs", texts(3))
		for i, res := range results {
			if (res.Err != nil) != (i == 1) {
				r.Errorf("message %d: error %v", i, res.Err)
			}
		}
		if err := results[1].Err; errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "InvalidMessageContents") {
			r.Errorf("error %v, want a permanent one that names the cause", err)
		}
		if n := len(r.seen("SendMessageBatch")); n != 1 {
			r.Errorf("%d requests, want 1", n)
		}
	})
}

func TestPartialFailureOfSettlements(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{Linger: new(time.Second)}, func(r *rig) {
		r.publish("jobs", texts(20)...)
		leases := r.receive(r.subscribe("jobs", time.Minute, 20), 20, time.Minute)
		r.from(func(c sqstest.Call) sqstest.Fault {
			if c.Number == 1 && strings.HasSuffix(c.Action, "Batch") {
				return sqstest.FailEntries(0, 9)
			}
			return sqstest.Fault{}
		})
		r.ackAll(leases[:10])
		var wg sync.WaitGroup
		for _, l := range leases[10:] {
			wg.Go(func() {
				if err := l.Retry(r.Context(), time.Hour, false); err != nil {
					r.Errorf("retry: %v", err)
				}
			})
		}
		wg.Wait()
		left := r.server.Messages("jobs")
		if len(left) != 10 {
			r.Errorf("%d messages are left, want 10", len(left))
		}
		for _, m := range left {
			if time.Until(m.Visible) < 59*time.Minute {
				r.Errorf("message %s is hidden until %v", m.ID, m.Visible)
			}
		}
		for _, action := range []string{"DeleteMessageBatch", "ChangeMessageVisibilityBatch"} {
			if calls := r.seen(action); len(calls) != 2 || calls[1].Entries != 2 {
				r.Errorf("%s: %d calls", action, len(calls))
			}
		}
	})
}

// What SQS keeps refusing for now is unavailable, after a few tries with pauses between them.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sqstest.Fault{
		"throttled": sqstest.Throttled, "over limit": sqstest.OverLimit, "server error": sqstest.ServerError, "unavailable": sqstest.Unavailable,
		"cut": {Cut: true}, "failed entry": sqstest.FailEntries(0),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sqs.Config{}, func(r *rig) {
				r.publish("jobs", texts(1)...)
				l := r.one(r.subscribe("jobs", time.Hour, 1), time.Minute)
				r.from(func(sqstest.Call) sqstest.Fault { return fault })
				start := time.Now()
				if err := r.b.Publish(r.Context(), "jobs", texts(1))[0].Err; !errors.Is(err, queue.ErrUnavailable) {
					r.Errorf("publish: error %v, want ErrUnavailable", err)
				}
				if n := len(r.seen("SendMessageBatch")); n != 3 || time.Since(start) < 50*time.Millisecond {
					r.Errorf("%d requests within %v, want 3 with pauses", n, time.Since(start))
				}
				if err := l.Ack(r.Context()); !errors.Is(err, queue.ErrUnavailable) {
					r.Errorf("ack: error %v, want ErrUnavailable", err)
				}
				r.from(nil)
				if err := l.Ack(r.Context()); err != nil {
					r.Errorf("ack once it works again: %v", err)
				}
				if n := len(r.server.Messages("jobs")); n != 0 {
					r.Errorf("%d messages are left", n)
				}
			})
		})
	}
}

// A lost answer to a send doubles a message on a standard queue, which nothing can prevent, and must not on a FIFO queue.
func TestLostAnswerOfSend(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.from(on("SendMessageBatch", 1, sqstest.Fault{Lose: true}))
		r.publish("jobs.fifo", texts(3)...)
		if n := len(r.server.Messages("jobs.fifo")); n != 3 {
			r.Errorf("%d messages, want 3", n)
		}
		if n := len(r.seen("SendMessageBatch")); n != 2 {
			r.Errorf("%d requests, want 2", n)
		}
	})
}

func TestLostAnswerOfSettlement(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs", "jobs.fifo"} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.publish(name, texts(1)...)
			l := r.one(r.subscribe(name, time.Minute, 1), time.Minute)
			r.from(on("DeleteMessageBatch", 1, sqstest.Fault{Lose: true}))
			if err := l.Ack(r.Context()); err != nil {
				r.Errorf("%s: ack: %v", name, err)
			}
			if n := len(r.server.Messages(name)); n != 0 {
				r.Errorf("%s: %d messages are left", name, n)
			}
		})
	}
}
