package sqs_test

import (
	"context"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

func (r *rig) inFlight(full string) (n int) {
	for _, m := range r.server.Messages(full) {
		if m.InFlight {
			n++
		}
	}
	return n
}

// With FIFOBatch siblings come with their head and are handed out one after the other, without another request.
func TestSiblingsFollowTheirHead(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{FIFOBatch: 10}, func(r *rig) {
		r.publish("jobs.fifo", texts(5)...)
		sub := r.subscribe("jobs.fifo", 30*time.Second, 10)
		r.from(nil)
		for i := range 5 {
			leases, err := sub.Receive(r.Context(), 10)
			if err != nil || len(leases) != 1 || string(leases[0].Body) != "message "+itoa(i) {
				t.Fatalf("step %d: %d leases, error %v", i, len(leases), err)
			}
			for range 4 { // longer than the lease: the head's extensions keep its siblings too
				time.Sleep(10 * time.Second)
				if err := leases[0].Extend(r.Context(), 30*time.Second); err != nil {
					t.Fatal(err)
				}
			}
			r.ackAll(leases)
		}
		if n := len(r.seen("ReceiveMessage")); n != 1 {
			t.Errorf("%d receives for five messages of one group, want 1", n)
		}
	})
}

// By default a poll takes one message, so that nothing waits behind a busy worker.
func TestOneMessagePerPoll(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs.fifo", texts(5)...)
		r.one(r.subscribe("jobs.fifo", 30*time.Second, 10), time.Minute)
		if n := r.inFlight("jobs.fifo"); n != 1 {
			t.Errorf("%d messages are in flight, want 1", n)
		}
	})
}

// Siblings never hold more than the slots that were asked for.
func TestSiblingsHoldSlots(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{FIFOBatch: 10}, func(r *rig) {
		r.publish("jobs.fifo", texts(9)...)
		sub := r.subscribe("jobs.fifo", time.Minute, 3)
		leases, err := sub.Receive(r.Context(), 3)
		if err != nil || len(leases) != 1 || r.inFlight("jobs.fifo") != 3 {
			t.Fatalf("%d leases, %d in flight, error %v", len(leases), r.inFlight("jobs.fifo"), err)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		if more, err := sub.Receive(ctx, 3); err == nil {
			t.Errorf("%d more were received", len(more))
		}
	})
}

// Once the head is retried, released or lost, its siblings are given back unrun, and the order is kept.
func TestSiblingsOfAHeadThatIsNotAcked(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*rig, *queue.Lease) error{
		"retried":  func(r *rig, l *queue.Lease) error { return l.Retry(r.Context(), time.Minute, false) },
		"released": func(r *rig, l *queue.Lease) error { return l.Release(r.Context()) },
		"lost":     func(*rig, *queue.Lease) error { time.Sleep(time.Minute); return nil },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sqs.Config{FIFOBatch: 10}, func(r *rig) {
				r.publish("jobs.fifo", texts(5)...)
				sub := r.subscribe("jobs.fifo", 30*time.Second, 10)
				first := r.one(sub, time.Minute)
				if err := end(r, first); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if n := r.inFlight("jobs.fifo"); n > 1 {
					t.Errorf("%d messages are still in flight", n)
				}
				for i := range 5 {
					l := r.one(sub, 2*time.Minute)
					if string(l.Body) != "message "+itoa(i) {
						t.Fatalf("got %s where %d was due", l.Body, i)
					}
					r.ackAll([]*queue.Lease{l})
				}
			})
		})
	}
}

// The order of publishing is the order of the queue, also over several batches and calls.
func TestFIFOSendsInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs.fifo", texts(57)...)
		for i, m := range r.server.Messages("jobs.fifo") {
			if m.Body != "message "+itoa(i) {
				t.Fatalf("message %d is %s", i, m.Body)
			}
		}
	})
}

// Field case G2: a replay under an id of its own is not swallowed by the one that was sent before, and the same replay twice adds nothing.
func TestReplayWithinTheDedupWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		pub := texts(1)[0]
		pub.DedupID = "job-1"
		r.publish("jobs.fifo", pub)
		sub := r.subscribe("jobs.fifo", 30*time.Second, 1)
		l := r.one(sub, time.Minute)
		time.Sleep(10 * time.Second)
		r.publish("jobs.fifo.dlq", queue.Publication{Message: l.Message, Group: l.Group, DedupID: "job-1"})
		r.ackAll([]*queue.Lease{l})
		time.Sleep(10 * time.Second)
		replay := queue.Publication{Message: l.Message, Group: l.Group, DedupID: "job-1 run 1"} // a space: SQS would refuse it
		r.publish("jobs.fifo", replay)
		r.publish("jobs.fifo", replay)
		r.publish("jobs.fifo", pub) // the old id: swallowed
		left := r.server.Messages("jobs.fifo")
		if len(left) != 1 || left[0].Group != "one" {
			t.Fatalf("there are %+v, want the replay once, in its group", left)
		}
		if n := len(r.server.Messages("jobs-dlq.fifo")); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
	})
}

// Publications that name no id are never taken for one another, however alike they are.
func TestEqualPublicationsAreTwo(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		pub := queue.Publication{Message: queue.Message{Body: []byte("same")}}
		r.publish("jobs.fifo", pub, pub)
		r.publish("jobs.fifo", pub)
		list := r.server.Messages("jobs.fifo")
		if len(list) != 3 || list[0].Group != list[2].Group || list[0].Group == "" {
			t.Errorf("there are %+v, want three in one default group", list)
		}
	})
}

// On a standard queue the group tells SQS whose message it is.
func TestFairGroups(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		inBubble(t, sqs.Config{NoFairGroups: off}, func(r *rig) {
			pubs := texts(3)
			pubs[0].Group, pubs[1].Group, pubs[2].Group = "tenant-1", "two words", ""
			r.publish("jobs", pubs...)
			sub := r.subscribe("jobs", time.Minute, 3)
			for _, l := range r.receive(sub, 3, time.Minute) {
				if l.Group != "" {
					t.Errorf("Lease.Group is %q on a standard queue", l.Group)
				}
				if err := l.Release(r.Context()); err != nil { // as copies
					t.Fatal(err)
				}
			}
			groups := map[string]string{}
			for _, m := range r.server.Messages("jobs") {
				groups[m.Body] = m.Group
			}
			want := map[bool][3]string{false: {"tenant-1", groups["message 1"], ""}}[off]
			if groups["message 0"] != want[0] || groups["message 2"] != want[2] || (groups["message 1"] == "") != off {
				t.Errorf("groups %v, switched off %t", groups, off)
			}
		})
	}
}
