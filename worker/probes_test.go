package worker_test

import (
	"testing"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// A probe that outlives its lease has no voice, so a breaker whose lease is shorter than its jobs would never close again.
func TestProbesMayTakeAsLongAsJobs(t *testing.T) {
	t.Parallel()
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	dead, err := dlqsqlite.Open(t.Context(), dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close() })
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "long", Config: worker.KindConfig{Timeout: 10 * time.Minute}}, nop)
	one := pools.DestinationConfig{Breaker: breaker.Config{MinimumCalls: 1, Probes: 1}}
	short := pools.DestinationConfig{Breaker: breaker.Config{ProbeLease: time.Minute}}
	w, err := worker.New(worker.Config{
		Broker: broker, Registry: registry, DeadLetters: dead,
		Destinations: pools.DestinationsConfig{Default: one, ByName: map[string]pools.DestinationConfig{"other": {Concurrency: new(1)}, "short": short}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := w.Destinations()
	for name, closes := range map[string]bool{"some": true, "other": true, "short": false} {
		now := time.Now()
		p, _ := d.Admit(now, pools.Request{Destination: name})
		p.Done(now, breaker.OutcomeFailure)
		probe, v := d.Admit(now.Add(time.Minute), pools.Request{Destination: name})
		if !v.OK() {
			t.Fatalf("%s: no probe: %+v", name, v)
		}
		probe.Done(now.Add(11*time.Minute), breaker.OutcomeSuccess)
		if _, open := d.OpenSince(name, now.Add(11*time.Minute)); open == closes {
			t.Errorf("%s: open %v after a probe that took as long as a job may", name, open)
		}
	}
}
