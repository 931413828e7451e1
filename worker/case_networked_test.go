package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// calls notes when each run of a handler began, and as what attempt.
type calls struct {
	mu       sync.Mutex
	at       []time.Duration
	attempts []int
	begin    time.Time
}

func (c *calls) note(job *worker.Job) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.attempts = append(c.at, time.Since(c.begin)), append(c.attempts, job.Attempt)
	return len(c.at)
}

func (c *calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.attempts, c.begin = nil, nil, time.Now()
}

// A2: the broker hands a message over that this worker is still working on. When both deliveries are closed, nobody extends it any more, and the
// retry comes when it was to come.
func TestDuplicateDeliveryLeavesNoRenewal(t *testing.T) {
	t.Parallel()
	c, registry := &calls{}, worker.NewRegistry()
	work(registry, "job", worker.KindConfig{Backoff: every(t, 3*time.Second)}, func(_ context.Context, job *worker.Job) error {
		if c.note(job) == 1 {
			time.Sleep(5 * time.Second)
			return errBoom
		}
		return nil
	})
	cfg := fieldConfig{caps: queue.Capabilities{CountsAttempts: true}, worker: worker.Config{Registry: registry, Lease: 3 * time.Second}}
	inField(t, cfg, func(f *field) {
		c.reset()
		f.add("", "m1")
		f.after(2 * time.Second)
		f.fake.again(worker.DefaultQueue, "1")
		f.after(3500 * time.Millisecond) // the duplicate was put back, the first run has failed
		if n := len(f.settled("m1")); n != 2 {
			t.Fatalf("%d deliveries are closed, want both", n)
		}
		before := len(f.fake.extensions())
		f.after(2 * time.Second)
		if n := len(f.fake.extensions()); n != before || before == 0 {
			t.Errorf("%d extensions after both deliveries were closed, %d before", n-before, before)
		}
		f.after(time.Hour)
		if len(c.at) != 2 || c.at[1] < 8*time.Second || c.at[1] > 9*time.Second || c.attempts[1] != 2 {
			t.Errorf("runs at %v as attempts %v, want the second at 8s", c.at, c.attempts)
		}
		if n := len(f.fake.extensions()); n != before {
			t.Errorf("%d extensions later", n-before)
		}
	})
}

// E2: exactly as many calls as attempts, with the handler's own last error and the right number in the dead letter.
func TestExactlyMaxAttemptsOnEveryBroker(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]queue.Capabilities{"counting": {CountsAttempts: true}, "not counting": {}, "FIFO": {FIFO: true}} {
		for _, most := range []int{1, 3} {
			forms(t, func(t *testing.T, keyed bool) {
				if caps.FIFO && !keyed {
					return // refused
				}
				c, registry := &calls{}, worker.NewRegistry()
				work(registry, "job", worker.KindConfig{Keyed: &keyed, MaxAttempts: most}, func(_ context.Context, job *worker.Job) error {
					return fmt.Errorf("boom %d", c.note(job))
				})
				inField(t, fieldConfig{caps: caps, worker: worker.Config{Registry: registry}}, func(f *field) {
					f.add("g", "a")
					f.after(2 * time.Hour)
					e := f.entry("a", 0)
					if len(c.at) != most || e.AttemptCount != most || e.Error != fmt.Sprintf("boom %d", most) || e.Cause != dlq.CauseExhausted || f.left() != 0 {
						t.Errorf("%s, at most %d: %d calls; entry of %d attempts, %s: %s", name, most, len(c.at), e.AttemptCount, e.Cause, e.Error)
					}
				})
			})
		}
	}
}

const ceiling = 432 * time.Second // 12 h, scaled by 100

// F1: a delay that reaches beyond what the broker can hide a message for. It comes back early, which is no attempt, and runs when it was to run.
func TestDelayBeyondTheCeilingIsKept(t *testing.T) {
	t.Parallel()
	c, registry := &calls{}, worker.NewRegistry()
	work(registry, "job", worker.KindConfig{Timeout: 2 * time.Minute, MaxAttempts: 2, Backoff: every(t, ceiling)}, func(_ context.Context, job *worker.Job) error {
		c.note(job)
		time.Sleep(time.Minute)
		return errBoom
	})
	cfg := fieldConfig{
		caps:    queue.Capabilities{CountsAttempts: true, MaxLease: ceiling, MaxRetryDelay: ceiling},
		worker:  worker.Config{Registry: registry},
		prepare: func(f *field) { f.fake.ceiling = ceiling },
	}
	inField(t, cfg, func(f *field) {
		c.reset()
		f.add("", "a")
		f.after(2 * time.Hour)
		if len(c.at) != 2 || c.at[1] < ceiling+time.Minute || c.at[1] > ceiling+2*time.Minute || c.attempts[1] != 2 {
			t.Errorf("runs at %v as attempts %v", c.at, c.attempts)
		}
		early := 0
		for _, s := range f.settled("a") {
			if s.Reason == worker.ReasonNotDue {
				early++
			}
		}
		if _, refused := f.fake.settlements(); refused != 0 || early == 0 {
			t.Errorf("%d extensions were refused; came early %d times", refused, early)
		}
		if e := f.entry("a", 0); e.AttemptCount != 2 {
			t.Errorf("dead after %d attempts", e.AttemptCount)
		}
	})
}

// F1: a job that waited in this worker for its turn runs into the ceiling of its lease. An unkeyed one is told in time to be settled; a keyed one
// goes on, and the copy that comes meanwhile runs nothing.
func TestHandlerIsToldThatItsLeaseEnds(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		var cause error
		var told, lost time.Time
		registry := worker.NewRegistry()
		kind := worker.KindConfig{Keyed: &keyed, Timeout: 400 * time.Second, Bulkhead: 1, Waiting: new(1)}
		work(registry, "job", kind, func(ctx context.Context, job *worker.Job) error {
			wait := 100 * time.Second
			if job.ID == "second" {
				wait = 380 * time.Second
			}
			select {
			case <-time.After(wait):
				return nil
			case <-ctx.Done():
				if cause == nil {
					cause, told = context.Cause(ctx), time.Now()
				}
				return ctx.Err()
			}
		})
		cfg := fieldConfig{
			caps:   queue.Capabilities{CountsAttempts: true, MaxLease: ceiling},
			worker: worker.Config{Registry: registry},
			prepare: func(f *field) {
				f.fake.ceiling = ceiling
				f.also = observerFunc(func(e worker.Event) {
					if event, ok := e.(*worker.Lost); ok && errors.Is(event.Err, worker.ErrLeaseLost) {
						lost = time.Now()
					}
				})
			},
		}
		inField(t, cfg, func(f *field) {
			f.add("", "first")
			f.after(time.Second)
			received := time.Now()
			f.add("", "second")
			f.after(time.Hour)
			s := f.settled("second")
			if _, refused := f.fake.settlements(); refused != 0 || f.left() != 0 {
				t.Errorf("%d extensions were refused, %d messages are left", refused, f.left())
			}
			if keyed {
				ended := map[worker.Outcome]int{}
				for _, one := range s {
					ended[one.Outcome]++
				}
				if after := lost.Sub(received); after < ceiling || after > ceiling+5*time.Second {
					t.Errorf("the loss was noticed after %s", after)
				}
				if cause != nil || ended[worker.OutcomeSucceeded] != 1 || ended[worker.OutcomeDuplicate] != 1 || f.leasesLost() != 1 {
					t.Errorf("cancelled with %v, ended as %v, told of %d lost leases", cause, ended, f.leasesLost())
				}
				return
			}
			if after := told.Sub(received); !errors.Is(cause, worker.ErrLeaseEnding) || after >= ceiling || after < ceiling-20*time.Second {
				t.Errorf("cancelled with %v after %s", cause, after)
			}
			if s[0].Outcome != worker.OutcomeFailed || s[0].SettleErr != nil {
				t.Errorf("the first delivery ended as %s, %v", s[0].Outcome, s[0].SettleErr)
			}
		})
	})
}

func (b *bubble) leasesLost() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if lost, ok := e.(*worker.Lost); ok && errors.Is(lost.Err, worker.ErrLeaseLost) {
			n++
		}
	}
	return n
}

// F2: a delay longer than the broker's own, three workers and a short lease: the job runs once, when it is due.
func TestLongDelayRunsOnce(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		c, registry := &calls{}, worker.NewRegistry()
		work(registry, "job", worker.KindConfig{Keyed: &keyed}, func(_ context.Context, job *worker.Job) error {
			c.note(job)
			return nil
		})
		const longest = 9 * time.Second // 15 min, scaled by 100
		cfg := worker.Config{Registry: registry, Lease: 2 * time.Second}
		inField(t, fieldConfig{caps: queue.Capabilities{CountsAttempts: true, MaxDelay: longest, MaxRetryDelay: longest}, worker: cfg}, func(f *field) {
			stop := f.more(2, cfg)
			defer stop()
			c.reset()
			client, err := worker.NewClient(worker.ClientConfig{Broker: f.fake})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Enqueue(f.ctx, worker.NewJob{Kind: "job", At: time.Now().Add(30 * time.Second)}); err != nil {
				t.Fatal(err)
			}
			f.after(time.Hour)
			if len(c.at) != 1 || c.at[0] < 30*time.Second || c.at[0] > 32*time.Second || c.attempts[0] != 1 || f.left() != 0 {
				t.Errorf("runs at %v as attempts %v; %d messages are left", c.at, c.attempts, f.left())
			}
		})
	})
}

// F2: a FIFO queue has no delay of a job's own, and says so at enqueue.
func TestDelayOnFIFOIsRefused(t *testing.T) {
	t.Parallel()
	client, err := worker.NewClient(worker.ClientConfig{Broker: newFakeBroker(queue.Capabilities{FIFO: true})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(t.Context(), worker.NewJob{Kind: "job", Delay: time.Minute}); !errors.Is(err, queue.ErrDelayTooLong) {
		t.Errorf("enqueue: %v", err)
	}
}

// more starts n more workers. The caller stops them.
func (f *field) more(n int, cfg worker.Config) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range n {
		cfg.Broker, cfg.Store, cfg.DeadLetters, cfg.Owner = f.fake, f.claims, f.dead, fmt.Sprintf("more-%d", i)
		w, err := worker.New(cfg)
		if err != nil {
			f.t.Fatal(err)
		}
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				f.t.Errorf("run: %v", err)
			}
		})
	}
	synctest.Wait()
	return func() {
		cancel()
		wg.Wait()
	}
}
