package pools

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

func BenchmarkBreakerAdmitRecord(b *testing.B) {
	br, err := breaker.New(breaker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i++; i%100 == 0 { // time goes on, but reckoning it is not what is measured
			now = now.Add(100 * time.Microsecond)
		}
		p, _ := br.Admit(now)
		p.Done(now, breaker.OutcomeSuccess)
	}
}

func BenchmarkBreakerRefuse(b *testing.B) {
	br, err := breaker.New(breaker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	br.Force(now, breaker.OverrideOpen)
	b.ReportAllocs()
	for b.Loop() {
		if _, wait := br.Admit(now); wait == 0 {
			b.Fatal("admitted")
		}
	}
}

// BenchmarkDestinationsAdmitRecord goes through the registry, with every limit switched on.
func BenchmarkDestinationsAdmitRecord(b *testing.B) {
	r, err := NewDestinations(DestinationsConfig{Default: DestinationConfig{Concurrency: new(8), Rate: limiter.Config{Rate: new(1e9), Burst: 1e6}}})
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("hooks-%06d.example.com", i)
	}
	now := time.Now()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i++; i%100 == 0 {
			now = now.Add(100 * time.Microsecond)
		}
		p, _ := r.Admit(now, Request{Destination: names[i%len(names)]})
		p.Done(now, breaker.OutcomeSuccess)
	}
}

func BenchmarkDestinationsParallel(b *testing.B) {
	r, err := NewDestinations(DestinationsConfig{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, _ := r.Admit(now, Request{Destination: "sendgrid"})
			p.Done(now, breaker.OutcomeSuccess)
		}
	})
}

// BenchmarkBytesPerDestination reports what one of 100,000 destinations costs: the heap with the registry's maps, names, state
// and, for "used", a window with calls in it.
func BenchmarkBytesPerDestination(b *testing.B) {
	for _, used := range []bool{false, true} {
		b.Run(map[bool]string{false: "new", true: "used"}[used], func(b *testing.B) {
			const n = 100_000
			var per float64
			for b.Loop() {
				before := heap()
				r, err := NewDestinations(DestinationsConfig{Max: n})
				if err != nil {
					b.Fatal(err)
				}
				now := time.Now()
				for i := range n {
					p, v := r.Admit(now, Request{Destination: fmt.Sprintf("hooks-%06d.example.com", i)})
					if !v.OK() {
						b.Fatal(v)
					}
					if used {
						p.Done(now, breaker.OutcomeSuccess)
					} else {
						p.Cancel(now)
					}
				}
				per = float64(heap()-before) / n
				if r.Len() != n {
					b.Fatal(r.Len())
				}
				runtime.KeepAlive(r)
			}
			b.ReportMetric(per, "B/destination")
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
