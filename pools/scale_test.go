package pools

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

const many = 100_000

// endpoints is a registry that knows many destinations as a webhook worker does: each with limits of its own, in the slow lane, adaptive, and used.
func endpoints(t testing.TB, now time.Time) (*Destinations, []string) {
	t.Helper()
	r := registry(t, DestinationsConfig{
		Max: many, SlowLane: SlowLaneConfig{Slots: 128}, Default: DestinationConfig{Breaker: breaker.Webhook(), Lane: new(true)},
	})
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("hooks-%06d.example.com", i)
		set(t, r, now, names[i], &DestinationConfig{
			Concurrency: new(3 + i%5), Rate: limiter.Config{Rate: new(1000.0), Burst: 10}, Adaptive: adaptive.LimitConfig{Min: new(1)},
		})
		for range 3 {
			p, v := r.Admit(now, Request{Destination: names[i]})
			if !v.OK() {
				t.Fatal(v)
			}
			p.Done(now.Add(20*time.Millisecond), breaker.OutcomeSuccess)
		}
	}
	return r, names
}

// TestManyDestinationsFitIntoMemory: 100,000 that one worker knows take at most 64 MB, their names included, and what is known of those that are in
// trouble comes on top for these alone.
func TestManyDestinationsFitIntoMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes 100,000 destinations")
	}
	const limit = 64 << 20
	before := heap()
	r, names := endpoints(t, t0)
	healthy := heap() - before
	for _, name := range names[:many/20] { // 5 % are open, deferred and limited
		for range 5 {
			if p, v := r.Admit(t0, Request{Destination: name}); v.OK() {
				p.Done(at(time.Second), breaker.OutcomeFailure)
			}
		}
		r.Defer(at(time.Second), Request{Destination: name}, time.Second)
	}
	sick := heap() - before
	if r.Len() != many {
		t.Fatalf("%d destinations", r.Len())
	}
	t.Logf("%d bytes a destination, %d with 5 %% in trouble", healthy/many, sick/many)
	if sick > limit {
		t.Errorf("%d destinations take %d MB, want at most %d", many, sick>>20, limit>>20)
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(names)
}

// BenchmarkAdmissionAmongMany admits and completes calls to 100,000 destinations in turn and reports the 99th percentile of the admission.
func BenchmarkAdmissionAmongMany(b *testing.B) {
	now := time.Now()
	r, names := endpoints(b, now)
	took := make([]time.Duration, 0, 1<<20)
	i := 0
	runtime.GC()
	b.ResetTimer()
	for b.Loop() {
		i = (i + 7919) % many // no two neighbours share a cache line
		now = now.Add(time.Microsecond)
		start := time.Now()
		p, v := r.Admit(now, Request{Destination: names[i]})
		d := time.Since(start)
		if v.OK() {
			p.Done(now, breaker.OutcomeSuccess)
		}
		if len(took) < cap(took) {
			took = append(took, d)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns/admission")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns/admission")
}

// BenchmarkJudgeAmongMany looks at the ages of calls in flight among 100,000 destinations.
func BenchmarkJudgeAmongMany(b *testing.B) {
	now := time.Now()
	r, names := endpoints(b, now)
	for _, calls := range []int{20, 512} {
		b.Run(fmt.Sprintf("%d calls", calls), func(b *testing.B) {
			for i := range calls {
				p, _ := r.Admit(now, Request{Destination: names[i*many/calls]})
				defer p.Done(now, breaker.OutcomeSuccess)
			}
			for b.Loop() {
				if !r.Judge(now) {
					b.Fatal("nothing is in flight")
				}
			}
		})
	}
}
