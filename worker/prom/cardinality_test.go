package prom

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// Ids, destinations and kinds that nobody registered must not make series, however many there are.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Destinations = []string{"sendgrid"}
		o, reg := newObserver(t, r.cfg)
		w := r.start(t, o, worker.Config{
			Registry: mailRegistry(), Concurrency: 50, UnknownKindAfter: 2 * time.Minute, Hold: worker.HoldConfig{Interval: time.Minute},
		})
		r.enqueue(t, worker.NewJob{Kind: "mail", Destination: "sendgrid"})
		time.Sleep(10 * time.Second)
		before := gather(t, reg)

		unique, destinations, unknown := 1_000, 300, 50
		if os.Getenv("SOAK") != "" {
			unique, destinations, unknown = 10_000, 3_000, 500
		}
		var jobs []worker.NewJob
		for i := range unique {
			job := worker.NewJob{
				ID: fmt.Sprintf("order-%d", i), Kind: "mail", Key: fmt.Sprintf("secret-key-%d", i), Destination: fmt.Sprintf("h%d.hooks.test", i%destinations),
			}
			if i%100 == 0 {
				job.Destination = "broken"
			}
			jobs = append(jobs, job)
		}
		for i := range unknown {
			jobs = append(jobs, worker.NewJob{Kind: fmt.Sprintf("random.%d", i)})
		}
		r.enqueue(t, jobs...)
		time.Sleep(10 * time.Second)
		busy := gather(t, reg)
		if n := w.Destinations().Len(); n < destinations*9/10 {
			t.Fatalf("only %d destinations are remembered: the test does not bite", n)
		}
		time.Sleep(15 * time.Minute)
		after := gather(t, reg)

		if grown := len(after) - len(before); grown > 40 {
			t.Errorf("%d series more after %d jobs, at most 40 are expected", grown, len(jobs))
		}
		for name := range after {
			for _, private := range []string{"order-", "secret-key", "hooks.test", "random.", "not today", "http", "broken"} {
				if strings.Contains(name, private) {
					t.Errorf("series %s shows %q", name, private)
				}
			}
		}
		after.expect(t, series{
			`caisson_dead_letters_total{cause="unknown_kind",kind="other",queue="default"}`: float64(unknown),
			`caisson_dead_letters_total{cause="rejected",kind="mail",queue="default"}`:      float64(unique / 100),
		})
		if busy[`caisson_destinations{state="closed"}`] < float64(destinations*9/10) || after[`caisson_destinations{state="closed"}`] > 1 {
			t.Errorf("destinations remembered: %v when busy, %v a quarter of an hour later",
				busy[`caisson_destinations{state="closed"}`], after[`caisson_destinations{state="closed"}`])
		}
	})
}

// Queues and kinds beyond the limit count together, also where they come from a store.
func TestLabelValuesAreBounded(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{})
	for i := range 3 * MaxLabelValues {
		o.Observe(&worker.Settled{Queue: fmt.Sprintf("q%d", i), Kind: fmt.Sprintf("k%d", i), Outcome: worker.OutcomeSucceeded, Settlement: worker.SettlementAck})
		o.Call(fmt.Sprintf("d%d", i))("refused")
	}
	s := gather(t, reg)
	for _, name := range []string{"caisson_jobs_settled_total", "caisson_call_events_total"} {
		if n := len(s.with(name)); n != MaxLabelValues+1 {
			t.Errorf("%s has %d series, want %d", name, n, MaxLabelValues+1)
		}
	}
	s.expect(t, series{`caisson_jobs_settled_total{kind="other",outcome="succeeded",queue="other",settlement="ack"}`: 2 * MaxLabelValues})
}
