package sqs_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

func itoa(n int) string { return strconv.Itoa(n) }

type receiveRequest struct {
	MaxNumberOfMessages         int
	WaitTimeSeconds             int
	VisibilityTimeout           int
	MessageAttributeNames       []string
	MessageSystemAttributeNames []string
}

// What a poll asks for. Field case E2: counts come only when they are asked for.
func TestReceiveRequest(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]receiveRequest{
		0:                {WaitTimeSeconds: 10, VisibilityTimeout: 30},
		90 * time.Second: {WaitTimeSeconds: 20, VisibilityTimeout: 90},
		12 * time.Hour:   {WaitTimeSeconds: 20, VisibilityTimeout: 43200},
		time.Second:      {WaitTimeSeconds: 1, VisibilityTimeout: 2}, // the wait on top, since the lease counts from before it
	} {
		inBubble(t, sqs.Config{}, func(r *rig) {
			r.publish("jobs", texts(1)...)
			r.from(nil)
			l := r.one(r.subscribe("jobs", lease, 3), time.Minute)
			got := decoded[receiveRequest](t, r.seen("ReceiveMessage")[0])
			for _, name := range []string{"ApproximateReceiveCount", "SentTimestamp", "MessageGroupId"} {
				if !slices.Contains(got.MessageSystemAttributeNames, name) {
					t.Errorf("%s is not asked for", name)
				}
			}
			if got.MaxNumberOfMessages != 1 || got.WaitTimeSeconds != want.WaitTimeSeconds || got.VisibilityTimeout != want.VisibilityTimeout {
				t.Errorf("lease %v: asked for %+v, want %+v", lease, got, want)
			}
			if l.Attempts != 1 || l.DeliveryCount != 1 || l.EnqueuedAt.IsZero() {
				t.Errorf("lease says attempt %d, delivery %d, enqueued at %v", l.Attempts, l.DeliveryCount, l.EnqueuedAt)
			}
		})
	}
}

// The lease counts from before the request was sent, since nobody knows when a message was taken.
func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		r.from(on("ReceiveMessage", 1, sqstest.Fault{Latency: 4 * time.Second}))
		start := time.Now()
		l := r.one(r.subscribe("jobs", 30*time.Second, 1), time.Minute)
		if want := start.Add(30 * time.Second); l.Deadline().After(want) {
			t.Errorf("the lease ends %v too late", l.Deadline().Sub(want))
		}
	})
}

// Several polls run where more than ten slots are free and messages are there; together they never ask for more than was asked of them.
func TestPollers(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		const slots, n = 75, 1000
		r.publish("jobs", texts(n)...)
		sub := r.subscribe("jobs", time.Hour, slots)
		var mu sync.Mutex
		open, most := 0, 0
		r.from(func(c sqstest.Call) sqstest.Fault {
			if c.Action != "ReceiveMessage" {
				return sqstest.Fault{}
			}
			mu.Lock()
			defer mu.Unlock()
			if open++; open > most {
				most = open
			}
			time.AfterFunc(50*time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				open--
			})
			return sqstest.Fault{Latency: 50 * time.Millisecond}
		})
		held, done := 0, 0
		for done < n {
			leases := r.receive(sub, 1, time.Minute)
			ctx, cancel := context.WithTimeout(r.Context(), 60*time.Millisecond)
			more, err := sub.Receive(ctx, slots-1)
			cancel()
			if err == nil {
				leases = append(leases, more...)
			}
			if held = len(leases); held > slots {
				t.Fatalf("%d messages held with %d slots", held, slots)
			}
			r.ackAll(leases)
			done += len(leases)
		}
		if most < 3 || most > 8 {
			t.Errorf("%d polls at once, want several and no more than 8", most)
		}
		for _, c := range r.seen("ReceiveMessage") {
			if got := decoded[receiveRequest](t, c); got.MaxNumberOfMessages < 1 || got.MaxNumberOfMessages > 10 || got.WaitTimeSeconds < 1 || got.WaitTimeSeconds > 20 {
				t.Fatalf("asked for %+v", got)
			}
		}
	})
}

// An empty queue costs one long poll at a time.
func TestIdleCostsOnePoll(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", time.Minute, 100)
		r.from(nil)
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Minute)
		defer cancel()
		if _, err := sub.Receive(ctx, 100); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if n := len(r.seen("ReceiveMessage")); n > 31 {
			t.Errorf("%d polls in 10 minutes of nothing", n)
		}
	})
}

// Past the in-flight limit a long poll may return at once with nothing: that must not become a hot loop.
func TestEmptyAnswersArePaced(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", time.Minute, 10)
		r.from(func(c sqstest.Call) sqstest.Fault {
			if c.Action == "ReceiveMessage" {
				return sqstest.Fault{Status: 200}
			}
			return sqstest.Fault{}
		})
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		_, _ = sub.Receive(ctx, 10)
		if n := len(r.seen("ReceiveMessage")); n > 100 {
			t.Errorf("%d polls in a minute", n)
		}
	})
}

// Throttled receives are told as unavailable, more and more slowly, and health follows.
func TestThrottledReceive(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", time.Minute, 10)
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.OverLimit })
		start := time.Now()
		for time.Since(start) < time.Minute {
			if _, err := sub.Receive(r.Context(), 10); !errors.Is(err, queue.ErrUnavailable) {
				t.Fatalf("error %v, want ErrUnavailable", err)
			}
			if err := sub.Healthy(); !errors.Is(err, queue.ErrUnavailable) {
				t.Fatalf("healthy says %v", err)
			}
		}
		if n := len(r.seen("ReceiveMessage")); n > 40 {
			t.Errorf("%d polls in a minute", n)
		}
		if gauge(t, r.b, "throttled") < 10 {
			t.Error("throttling is not counted")
		}
		r.from(nil)
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		_, _ = sub.Receive(ctx, 10)
		if err := sub.Healthy(); err != nil {
			t.Errorf("3 s after it works again: %v", err)
		}
	})
}

// A cancelled Receive waits at most a second for its poll, and returns what comes in that time.
func TestCancelledReceive(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", time.Minute, 10)
		ctx, cancel := context.WithCancel(r.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		leases, err := sub.Receive(ctx, 10)
		if took := time.Since(start); !errors.Is(err, context.Canceled) || len(leases) > 0 || took > 4*time.Second {
			t.Errorf("error %v, %d leases after %v", err, len(leases), took)
		}
		if n := gauge(t, r.b, "polls_open"); n != 0 {
			t.Errorf("%v polls are open", n)
		}

		ctx, cancel = context.WithCancel(r.Context())
		time.AfterFunc(time.Second, cancel)
		published := r.publishAfter(1500*time.Millisecond, "jobs")
		leases, err = sub.Receive(ctx, 10)
		<-published
		if err != nil || len(leases) != 1 {
			t.Errorf("%d leases, error %v; want the one that came half a second after the end", len(leases), err)
		}
	})
}

// What an open poll brings while the subscription closes is given back at once, not at the end of its lease.
func TestCloseGivesBack(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", time.Hour, 10)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := sub.Receive(r.Context(), 10); !errors.Is(err, queue.ErrClosed) {
				t.Errorf("error %v, want ErrClosed", err)
			}
		})
		synctest.Wait()
		published := r.publishAfter(500*time.Millisecond, "jobs")
		start := time.Now()
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
		<-published
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		wg.Wait()
		r.one(r.subscribe("jobs", time.Hour, 10), 10*time.Second)
		if n := gauge(t, r.b, "given_back"); n != 1 {
			t.Errorf("gauge given_back is %v, want 1", n)
		}
	})
}

// What a poll brings after its Receive has returned with the answer of another waits for the next Receive, but not for long.
func TestArrivalsForNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", time.Hour, 20)
		r.publish("jobs", texts(10)...)
		r.ackAll(r.receive(sub, 10, time.Minute)) // full: the next time there are two polls
		r.publish("jobs", texts(10)...)
		r.from(func(c sqstest.Call) sqstest.Fault {
			if c.Action == "ReceiveMessage" && c.Number%2 == 0 {
				return sqstest.Fault{Latency: 300 * time.Millisecond}
			}
			return sqstest.Fault{}
		})
		leases, err := sub.Receive(r.Context(), 20)
		if err != nil {
			t.Fatal(err)
		}
		r.publish("jobs", texts(5)...) // for the poll that is still under way
		time.Sleep(2 * time.Second)
		if n := r.inFlight("jobs"); n != len(leases) {
			t.Errorf("%d messages are hidden and %d are held", n, len(leases))
		}
		if n := gauge(t, r.b, "given_back"); n != 5 {
			t.Errorf("%v messages were given back, want 5", n)
		}
	})
}

// A lost answer hides what it held until the lease is over; then it comes.
func TestLostReceive(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", 30*time.Second, 1)
		r.from(on("ReceiveMessage", 1, sqstest.Fault{Lose: true}))
		if _, err := sub.Receive(r.Context(), 1); !errors.Is(err, queue.ErrUnavailable) {
			t.Fatalf("error %v, want ErrUnavailable", err)
		}
		if l := r.one(sub, time.Minute); l.DeliveryCount != 2 {
			t.Errorf("delivery %d, want 2", l.DeliveryCount)
		}
	})
}

// A queue that is deleted and made again is used again, by the same subscription.
func TestQueueMadeAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		sub := r.subscribe("jobs", 30*time.Second, 1)
		deleteQueue(r, "jobs")
		if _, err := sub.Receive(r.Context(), 1); !errors.Is(err, queue.ErrQueueNotFound) {
			t.Errorf("receive: error %v, want ErrQueueNotFound", err)
		}
		if err := r.b.Publish(r.Context(), "jobs", texts(1))[0].Err; !errors.Is(err, queue.ErrQueueNotFound) {
			t.Errorf("publish: error %v, want ErrQueueNotFound", err)
		}
		if err := r.b.CreateQueue(r.Context(), "jobs"); err != nil {
			t.Fatal(err)
		}
		r.publish("jobs", texts(1)...)
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			if leases, err := sub.Receive(r.Context(), 1); err == nil {
				r.ackAll(leases)
				return
			}
		}
		t.Error("nothing came within 10 s")
	})
}
