package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
)

const benchQueue = "bench"

func benchBroker(b *testing.B, sync string) *Broker {
	b.Helper()
	br, err := Open(b.Context(), Config{Path: filepath.Join(b.TempDir(), "q.db"), Sync: sync})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := br.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := br.CreateQueue(b.Context(), benchQueue); err != nil {
		b.Fatal(err)
	}
	return br
}

// benchPubs makes n messages of 1 KB with one header, as the worker sends them.
func benchPubs(n int) []queue.Publication {
	pubs := make([]queue.Publication, n)
	for i := range pubs {
		pubs[i].Body = make([]byte, 1024)
		pubs[i].Headers = map[string]string{queue.HeaderEnvelope: `{"v":1,"id":"0198c6a2-7b1e-7d6e-9f0a-3f5c8b2d4e6f","kind":"email.send"}`}
	}
	return pubs
}

func mustPublish(b *testing.B, br *Broker, pubs []queue.Publication) {
	for _, r := range br.Publish(b.Context(), benchQueue, pubs) {
		if r.Err != nil {
			b.Error(r.Err)
			return
		}
	}
}

// measure starts the clock; the returned function stops it and reports the rate and this process's CPU time per message, which
// a busy machine disturbs less.
func measure(b *testing.B) (report func(messages int)) {
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	return func(messages int) {
		b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msgs/s")
		b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(messages), "cpu-us/msg")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// parallel runs b.N operations in callers goroutines.
func parallel(b *testing.B, callers int, do func()) {
	var next atomic.Int64
	done := make(chan struct{})
	for range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			for next.Add(1) <= int64(b.N) {
				do()
			}
		}()
	}
	for range callers {
		<-done
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			br, pubs := benchBroker(b, ""), benchPubs(1)
			report := measure(b)
			parallel(b, callers, func() { mustPublish(b, br, pubs) })
			report(b.N)
		})
	}
	b.Run("batch=100", func(b *testing.B) {
		br, pubs := benchBroker(b, ""), benchPubs(100)
		report := measure(b)
		for range b.N {
			mustPublish(b, br, pubs)
		}
		report(100 * b.N)
	})
}

// BenchmarkReceiveAck leases 16 at a time in 4 receivers and settles each lease in a goroutine's own call, as a worker does.
func BenchmarkReceiveAck(b *testing.B) {
	for _, sync := range []string{"mixed", "full"} {
		b.Run(sync, func(b *testing.B) {
			br := benchBroker(b, sync)
			for left := b.N; left > 0; left -= 1000 {
				mustPublish(b, br, benchPubs(min(left, 1000)))
			}
			report := measure(b)
			consume(b, br, b.N)
			report(b.N)
		})
	}
}

// BenchmarkCycle publishes, leases and settles at the same time: 16 publishers of batches of 10, 64 slots.
func BenchmarkCycle(b *testing.B) {
	for _, sync := range []string{"mixed", "full"} {
		b.Run(sync, func(b *testing.B) {
			br := benchBroker(b, sync)
			pubs := benchPubs(10)
			report := measure(b)
			produced := make(chan struct{})
			go func() {
				defer close(produced)
				var next atomic.Int64
				done := make(chan struct{})
				for range 16 {
					go func() {
						defer func() { done <- struct{}{} }()
						for {
							left := int64(b.N) - next.Add(10) + 10
							if left <= 0 {
								return
							}
							mustPublish(b, br, pubs[:min(left, 10)])
						}
					}()
				}
				for range 16 {
					<-done
				}
			}()
			consume(b, br, b.N)
			<-produced
			report(b.N)
		})
	}
}

// BenchmarkBacklog shows that a long queue costs what a short one does: 64 messages are published, leased and acked per
// operation while the backlog stays. It also reports what counting it costs.
func BenchmarkBacklog(b *testing.B) {
	for _, backlog := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(backlog), func(b *testing.B) {
			br := benchBroker(b, "")
			for range backlog / 1000 {
				mustPublish(b, br, benchPubs(1000))
			}
			const batch = 64
			sub, err := br.Subscribe(b.Context(), benchQueue, queue.SubscribeConfig{Slots: batch})
			if err != nil {
				b.Fatal(err)
			}
			pubs := benchPubs(batch)
			report := measure(b)
			for b.Loop() {
				mustPublish(b, br, pubs)
				leases, err := sub.Receive(b.Context(), batch)
				if err != nil || len(leases) != batch {
					b.Fatalf("%d leases: %v", len(leases), err)
				}
				var wg sync.WaitGroup
				for _, l := range leases {
					wg.Go(func() {
						if err := l.Ack(b.Context()); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			report(batch * b.N)
			start := time.Now()
			if _, err := br.count(b.Context(), br.hub.line(benchQueue).id); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "count-ms")
		})
	}
}

// consume receives and acks n messages: 4 receivers, 16 settling goroutines each.
func consume(b *testing.B, br *Broker, n int) {
	const receivers, slots = 4, 16
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var settled atomic.Int64
	done := make(chan struct{})
	for range receivers {
		sub, err := br.Subscribe(ctx, benchQueue, queue.SubscribeConfig{Slots: slots})
		if err != nil {
			b.Fatal(err)
		}
		work := make(chan *queue.Lease, slots)
		for range slots {
			go func() {
				for l := range work {
					if err := l.Ack(b.Context()); err != nil {
						b.Error(err)
					}
					if settled.Add(1) == int64(n) {
						cancel()
					}
				}
				done <- struct{}{}
			}()
		}
		go func() {
			defer close(work)
			for {
				leases, err := sub.Receive(ctx, slots)
				if err != nil {
					return
				}
				for _, l := range leases {
					work <- l
				}
			}
		}()
	}
	for range receivers * slots {
		<-done
	}
	if got := settled.Load(); got != int64(n) {
		b.Errorf("settled %d of %d", got, n)
	}
}
