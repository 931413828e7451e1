package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

func request(job string) idempotency.Request {
	return idempotency.Request{
		Key: idempotency.Key{Scope: "email.send", Value: job}, Job: job, Fingerprint: idempotency.FingerprintOf([]byte(job)),
		Owner: "worker-1 4711 k3j4h5", Lease: time.Minute,
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cycle claims and completes one fresh job.
func cycle(t testing.TB, store idempotency.Store) {
	r := request(uuid.Must(uuid.NewV7()).String())
	c := store.Claim(t.Context(), []idempotency.Request{r})[0]
	if c.Status != idempotency.StatusAcquired {
		t.Errorf("claim: %v, %v", c.Status, c.Err)
		return
	}
	h := idempotency.Handle{Key: r.Key, Job: r.Job, Token: c.Token}
	if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: h}})[0]; err != nil {
		t.Errorf("complete: %v", err)
	}
}

// workers runs do n times by as many goroutines.
func workers(n int64, goroutines int, do func()) {
	var left atomic.Int64
	left.Store(n)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				do()
			}
		})
	}
	wg.Wait()
}

// BenchmarkCycle measures claim and completion of one fresh job each, with that many jobs in flight. cpu-us/job is the client's share.
func BenchmarkCycle(b *testing.B) {
	for _, jobs := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			store, _, _ := open(b, pgdb.Config{}, postgres.Config{})
			cycle(b, store)
			trips, start := store.RoundTrips(), cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			workers(int64(b.N), jobs, func() { cycle(b, store) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64((cpuTime()-start).Microseconds())/float64(b.N), "cpu-us/job")
			b.ReportMetric(float64(store.RoundTrips()-trips)/float64(b.N), "trips/job")
		})
	}
}
