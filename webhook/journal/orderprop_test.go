package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/ordering"
	"github.com/caisson-go/caisson/worker"
)

// world is a publisher, a worker and an ordering that may all die between any two effects.
type world struct {
	*rig
	lines     *lines
	orderer   *ordering.Dispatcher
	publisher *webhook.Publisher
	stop      func()
	published []string

	mu   sync.Mutex
	dice *rand.Rand
}

// crashes says whether an effect is the one after, or before, which a process dies.
func (w *world) crashes(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(100) < percent
}

func newWorld(t *testing.T, seed uint64, percent int, failures map[string]int) *world {
	w := &world{rig: newRig(t), lines: &lines{}, dice: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // repeatable
	for i := range 3 {
		w.add(fmt.Sprint("line-", i), ordered)
	}
	w.seen.answers(func(endpoint, event string) int {
		if key := endpoint + event; failures[key] > 0 {
			failures[key]--
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	w.broker.SetPlan(func(p queuetest.Point) queuetest.Fault {
		percent := percent
		if p.Op == queuetest.OpSettle {
			percent /= 5 // each costs a lease
		} else if p.Op != queuetest.OpPublish {
			return queuetest.Fault{}
		}
		switch {
		case w.crashes(percent):
			return queuetest.Fault{Before: errCrash}
		case w.crashes(percent):
			return queuetest.Fault{After: errCrash}
		}
		return queuetest.Fault{}
	})
	w.lines.fault = func() (before, after error) {
		switch {
		case w.crashes(percent):
			return errCrash, nil
		case w.crashes(percent):
			return nil, errCrash
		}
		return nil, nil
	}
	w.restart()
	return w
}

// restart forgets all that was in memory.
func (w *world) restart() {
	if w.stop != nil {
		w.stop()
	}
	w.orderer = w.ordering(w.lines, func(cfg *ordering.Config) { cfg.Lost, cfg.Interval = time.Nanosecond, time.Hour })
	w.publisher = w.rig.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = w.orderer })
	w.stop = w.startOrdered(w.orderer)
}

// publishNext publishes one event until that is confirmed; the publisher may be another one each time.
func (w *world) publishNext(restarts bool) {
	id := fmt.Sprintf("evt_%03d", len(w.published))
	for {
		_, err := w.publisher.Publish(context.Background(), webhook.Event{ID: id, Type: "t", Body: []byte(id)})
		if err == nil {
			w.published = append(w.published, id)
			return
		}
		if !errors.Is(err, errCrash) {
			w.t.Fatalf("publish: %v", err)
		}
		if restarts && w.crashes(30) {
			w.restart()
		}
	}
}

// TestOrderSurvivesCrashes: whatever fails and whoever dies between any two effects, each line's events come in the order in which they were
// published, and none is lost: those that do not come are dead letters.
func TestOrderSurvivesCrashes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.IntRange(1, 12).Draw(rt, "events")
		failures := map[string]int{}
		dead := map[string]bool{}
		for line := range 3 {
			for i := range events {
				key := fmt.Sprintf("line-%devt_%03d", line, i)
				failures[key] = rapid.SampledFrom([]int{0, 0, 0, 1, 2, maxAttempts}).Draw(rt, key)
				dead[key] = failures[key] >= maxAttempts
			}
		}
		percent := rapid.SampledFrom([]int{0, 5, 15, 30}).Draw(rt, "percent of crashes")
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), percent, failures)
		defer w.close()
		for len(w.published) < events {
			switch rapid.SampledFrom([]string{"publish", "publish", "publish", "restart", "sweep"}).Draw(rt, "action") {
			case "publish":
				w.publishNext(percent > 0)
			case "restart":
				w.restart()
			case "sweep":
				_ = w.orderer.Sweep(context.Background()) // a fault is what it may meet
			}
		}
		w.broker.SetPlan(nil)
		w.lines.mu.Lock()
		w.lines.fault = nil
		w.lines.mu.Unlock()
		w.restart()
		swept := time.Now()
		w.await("empty lines", func() bool {
			if time.Since(swept) > 300*time.Millisecond {
				swept = time.Now()
				if err := w.orderer.Sweep(context.Background()); err != nil {
					t.Errorf("sweep: %v", err)
				}
			}
			return w.linesEmpty()
		})
		w.stop()
		w.check(rt, dead)
	})
}

func (w *world) check(t *rapid.T, dead map[string]bool) {
	letters := map[string]bool{}
	for _, e := range w.letters(dlq.StateDead) {
		letters[e.Job] = true
	}
	for _, e := range w.endpoints {
		got := firsts(w.seen.took(e.ID))
		var want []string
		for _, id := range w.published {
			switch taken, letter := slices.Contains(got, id), letters[webhook.Event{Tenant: e.Tenant, ID: id}.JobID(e.ID)]; {
			case taken:
				want = append(want, id)
			case !letter:
				t.Errorf("%s of %s is neither delivered nor a dead letter", id, e.ID)
			case !dead[e.ID+id]:
				t.Errorf("%s of %s was given up too early", id, e.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s took %v, want %v", e.ID, got, want)
		}
	}
}

var (
	_ queue.Broker    = (*queuetest.FaultBroker)(nil)
	_ worker.Observer = (*ordering.Dispatcher)(nil)
)
