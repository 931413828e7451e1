package prom

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

func TestScrapeShowsTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Destinations, r.cfg.Queues = []string{"sendgrid", "twilio"}, []string{"missing"}
		o, reg := newObserver(t, r.cfg)
		w := r.start(t, o, worker.Config{Registry: mailRegistry(), Concurrency: 10})
		w.Destinations().Force("sendgrid", time.Now(), breaker.OverrideOpen)
		w.Destinations().Force("hooks.test", time.Now(), breaker.OverrideOpen)
		r.enqueue(t,
			worker.NewJob{Kind: "mail"},
			worker.NewJob{Kind: "mail", Destination: "broken"},
			worker.NewJob{Kind: "mail", Destination: "sendgrid"},
			worker.NewJob{Kind: "mail", Delay: time.Hour})
		time.Sleep(time.Minute)

		gather(t, reg).expect(t, series{
			`caisson_worker_ready`:                                              1,
			`caisson_worker_leases`:                                             0,
			`caisson_worker_slots{queue="default"}`:                             10,
			`caisson_worker_slots_in_use{queue="default"}`:                      0,
			`caisson_pool_size{kind="mail"}`:                                    4,
			`caisson_pool_in_use{kind="mail"}`:                                  0,
			`caisson_pool_waiting{kind="mail"}`:                                 0,
			`caisson_pool_rejected_total{kind="mail"}`:                          0,
			`caisson_destinations{state="forced_open"}`:                         2,
			`caisson_destinations{state="closed"}`:                              1,
			`caisson_breaker_state{destination="sendgrid",state="forced_open"}`: 1,
			`caisson_breaker_state{destination="sendgrid",state="closed"}`:      0,
			`caisson_breaker_state{destination="twilio",state="closed"}`:        1,
			`caisson_breaker_open_seconds{destination="sendgrid"}`:              60,
			`caisson_breaker_open_seconds{destination="other"}`:                 60,
			`caisson_breaker_open_seconds{destination="twilio"}`:                0,
			`caisson_queue_depth{queue="default",state="ready"}`:                0,
			`caisson_queue_depth{queue="default",state="delayed"}`:              1,
			`caisson_queue_depth{queue="default",state="in_flight"}`:            0,
			`caisson_dlq_depth{cause="rejected",queue="default"}`:               1,
			`caisson_held_jobs{destination="sendgrid"}`:                         1,
			`caisson_held_jobs{destination="other"}`:                            0,
			`caisson_store_up{store="broker"}`:                                  1,
			`caisson_store_up{store="idempotency"}`:                             1,
			`caisson_store_up{store="dlq"}`:                                     1,
		})
	})
}

func TestHeldJobsAreCountedByDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i, destination := range []string{"sendgrid", "sendgrid", "a.test", "b.test"} {
			e := dlq.Entry{Job: string(rune('a' + i)), State: dlq.StateHeld, Destination: destination, Cause: dlq.CauseDestinationOpen}
			if err := r.dead.Put(t.Context(), []dlq.Entry{e})[0]; err != nil {
				t.Fatal(err)
			}
		}
		_, reg := newObserver(t, Config{DeadLetters: r.dead, Destinations: []string{"sendgrid"}})
		gather(t, reg).expect(t, series{
			`caisson_held_jobs{destination="sendgrid"}`: 2,
			`caisson_held_jobs{destination="other"}`:    2,
		})
	})
}

// silent is a broker and a store that never answer, whatever the context says; only end lets them.
type silent struct {
	queue.Broker
	dlq.Store
	claims
	end   chan struct{}
	asked chan struct{}
}

type claims struct{ idempotency.Store }

func (s silent) hang() {
	s.asked <- struct{}{}
	<-s.end
}

type silentBroker struct{ silent }

func (s silentBroker) Depth(context.Context, string) (queue.Depth, error) {
	s.hang()
	return queue.Depth{Ready: queue.CountOf(7)}, nil
}

type silentDead struct{ silent }

func (s silentDead) Depth(context.Context) (dlq.Depth, error) {
	s.hang()
	return dlq.Depth{}, nil
}

// A broker that knows no in-flight count has none, and one that does not answer has no depth at all.
func TestScrapeDoesNotWaitForADeadStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := silent{end: make(chan struct{}), asked: make(chan struct{}, 100)}
		_, reg := newObserver(t, Config{Broker: silentBroker{dead}, Queues: []string{"q"}, DeadLetters: silentDead{dead}})
		for range 3 {
			start := time.Now()
			s := gather(t, reg)
			if took := time.Since(start); took != 2*time.Second {
				t.Errorf("scrape took %s, want 2s", took)
			}
			s.expect(t, series{`caisson_store_up{store="broker"}`: 0, `caisson_store_up{store="dlq"}`: 0})
			for _, absent := range []string{"caisson_queue_depth", "caisson_dlq_depth", "caisson_held_jobs"} {
				if got := s.with(absent); len(got) > 0 {
					t.Errorf("unknown, yet there: %v", got)
				}
			}
		}
		if n := len(dead.asked); n != 2 {
			t.Errorf("%d questions under way, want one for each of the two", n)
		}
		close(dead.end)
		synctest.Wait()
		s := gather(t, reg)
		s.expect(t, series{`caisson_store_up{store="broker"}`: 1, `caisson_queue_depth{queue="q",state="ready"}`: 7})
		if got := s.with("caisson_queue_depth"); len(got) != 1 {
			t.Errorf("depths that the broker does not know are there: %v", got)
		}
	})
}

// Many scrapers cost as much as one.
func TestAnswersAreUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := silent{end: make(chan struct{}), asked: make(chan struct{}, 100)}
		close(dead.end)
		_, reg := newObserver(t, Config{DeadLetters: silentDead{dead}})
		for range 10 {
			gather(t, reg)
		}
		if n := len(dead.asked); n != 1 {
			t.Errorf("ten scrapes at once asked %d times, want 1", n)
		}
		time.Sleep(5 * time.Second)
		gather(t, reg)
		if n := len(dead.asked); n != 2 {
			t.Errorf("after 5s the store was asked %d times, want 2", n)
		}
	})
}
