package sqs_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue/sqs"
)

// consume works off n messages as a worker does: it asks for as many as it has free slots, and runs each for a while.
func (r *rig) consume(name string, n, slots int, run time.Duration) {
	r.Helper()
	sub := r.subscribe(name, 30*time.Second, slots)
	free := make(chan struct{}, slots)
	for range slots {
		free <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour) // of virtual time
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	done := 0
	for {
		asked := 0
		for asked == 0 || asked < slots && len(free) > 0 {
			<-free
			asked++
		}
		mu.Lock()
		over := done == n
		mu.Unlock()
		if over {
			return
		}
		leases, err := sub.Receive(ctx, min(asked, 64))
		for range asked - len(leases) {
			free <- struct{}{}
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			if done != n {
				r.Errorf("%d of %d are done, %d messages are left: %v", done, n, len(r.server.Messages(name)), err)
			}
			return
		}
		for _, l := range leases {
			wg.Go(func() {
				time.Sleep(run)
				if err := l.Ack(context.WithoutCancel(ctx)); err != nil {
					r.Errorf("ack: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if done++; done == n {
					cancel()
				}
				free <- struct{}{}
			})
		}
	}
}

// What a job costs in requests, with 10 ms between client and server: docs/sqs.md quotes these.
func TestRequestsPerJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots  int
		run    time.Duration
		bounds [3]float64 // sends, receives, deletes per job
	}{
		"100 slots, jobs of 100 ms": {100, 100 * time.Millisecond, [3]float64{0.1, 0.25, 0.25}},
		"10 slots, jobs of 100 ms":  {10, 100 * time.Millisecond, [3]float64{0.1, 0.25, 0.25}},
		"10 slots, jobs of 0 ms":    {10, 0, [3]float64{0.1, 0.35, 0.35}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sqs.Config{}, func(r *rig) {
				const n = 2000
				r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Fault{Latency: 10 * time.Millisecond} })
				r.publish("jobs", texts(n)...)
				start := time.Now()
				r.consume("jobs", n, c.slots, c.run)
				for i, action := range []string{"SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch"} {
					per := float64(len(r.seen(action))) / n
					t.Logf("%-20s %.3f per job", action, per)
					if per > c.bounds[i] {
						t.Errorf("%s: %.3f requests per job, want at most %.2f", action, per, c.bounds[i])
					}
				}
				t.Logf("%d jobs in %v", n, time.Since(start).Round(time.Millisecond))
			})
		})
	}
}

// A job now and then shares its requests with nobody, and causes no polls beside the one that brings it.
func TestRequestsPerRareJob(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		const n = 50
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Fault{Latency: 10 * time.Millisecond} })
		var wg sync.WaitGroup
		wg.Go(func() {
			for range n {
				r.publish("jobs", texts(1)...)
				time.Sleep(3 * time.Second)
			}
		})
		r.consume("jobs", n, 10, 100*time.Millisecond)
		wg.Wait()
		for _, action := range []string{"SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch"} {
			if per := float64(len(r.seen(action))) / n; per > 1.1 {
				t.Errorf("%s: %.2f requests per job, want 1", action, per)
			}
		}
	})
}
