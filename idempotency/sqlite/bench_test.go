package sqlite_test

import (
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// cycle claims and completes n fresh jobs in one batch each.
func cycle(b *testing.B, store idempotency.Store, n int, keyed bool) {
	reqs := make([]idempotency.Request, n)
	for i := range reqs {
		reqs[i] = request(uuid.Must(uuid.NewV7()).String())
		if keyed {
			reqs[i].Key.Value = "key of " + reqs[i].Job
		}
	}
	comps := make([]idempotency.Completion, n)
	for i, c := range store.Claim(b.Context(), reqs) {
		if c.Status != idempotency.StatusAcquired {
			b.Errorf("claim: %v, %v", c.Status, c.Err)
			return
		}
		comps[i].Handle = idempotency.Handle{Key: reqs[i].Key, Job: reqs[i].Job, Token: c.Token}
	}
	for _, err := range store.Complete(b.Context(), comps) {
		if err != nil {
			b.Errorf("complete: %v", err)
		}
	}
}

// BenchmarkClaimComplete measures claim and completion of one fresh job together.
func BenchmarkClaimComplete(b *testing.B) {
	for _, keyed := range []bool{false, true} {
		for _, batch := range []int{1, 32} {
			name := "key=id/batch="
			if keyed {
				name = "key=own/batch="
			}
			b.Run(name+strconv.Itoa(batch), func(b *testing.B) {
				store := open(b, sqlitefile.Config{Path: filepath.Join(b.TempDir(), "bench.db")})
				b.ReportAllocs()
				start := cpuTime()
				for done := 0; done < b.N; done += batch {
					cycle(b, store, min(batch, b.N-done), keyed)
				}
				b.ReportMetric(float64(cpuTime()-start)/1e3/float64(b.N), "cpu-us/job")
			})
		}
	}
	b.Run("key=id/callers=64", func(b *testing.B) {
		store := open(b, sqlitefile.Config{Path: filepath.Join(b.TempDir(), "bench.db")})
		b.ReportAllocs()
		b.SetParallelism(32)
		start := cpuTime()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				cycle(b, store, 1, false)
			}
		})
		b.ReportMetric(float64(cpuTime()-start)/1e3/float64(b.N), "cpu-us/job")
	})
}

// BenchmarkDuplicate measures the answer to a redelivery of completed work.
func BenchmarkDuplicate(b *testing.B) {
	store := open(b, sqlitefile.Config{Path: filepath.Join(b.TempDir(), "bench.db")})
	reqs := make([]idempotency.Request, 32)
	for i := range reqs {
		reqs[i] = request(strconv.Itoa(i))
	}
	claims := store.Claim(b.Context(), reqs)
	for i, c := range claims {
		h := idempotency.Handle{Key: reqs[i].Key, Job: reqs[i].Job, Token: c.Token}
		if err := store.Complete(b.Context(), []idempotency.Completion{{Handle: h}})[0]; err != nil {
			b.Fatal(err)
		}
	}
	for done := 0; done < b.N; done += len(reqs) {
		store.Claim(b.Context(), reqs)
	}
}
