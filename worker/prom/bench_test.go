package prom

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/worker"
)

func BenchmarkObserveSettled(b *testing.B) {
	o, _ := newObserver(b, Config{})
	e := &worker.Settled{
		Job: &worker.Job{ID: "job-1"}, Queue: "default", Kind: "email.send", Outcome: worker.OutcomeSucceeded, Settlement: worker.SettlementAck,
		Handle: 12 * time.Millisecond, Latency: 300 * time.Millisecond,
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			o.Observe(e)
		}
	})
}

func TestObservingASettledJobAllocatesNothing(t *testing.T) {
	o, _ := newObserver(t, Config{})
	e := &worker.Settled{Queue: "default", Kind: "mail", Outcome: worker.OutcomeSucceeded, Settlement: worker.SettlementAck, Handle: 1, Latency: 1}
	o.Observe(e)
	if n := testing.AllocsPerRun(100, func() { o.Observe(e) }); n > 0 {
		t.Errorf("%v allocations per settled job", n)
	}
}
