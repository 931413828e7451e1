package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// sickness makes a destination hang, and sees what its breaker does.
type sickness struct {
	mu      sync.Mutex
	began   time.Time // since when nothing is answered; zero while all is well
	spent   int       // calls begun since then, until the breaker opened
	opened  time.Time
	reason  breaker.TransitionReason
	refuses bool // it fails at once instead
}

// handle answers within 20 ms while the destination is well.
func (o *sickness) handle(ctx context.Context, job *worker.Job) error {
	o.mu.Lock()
	sick := !o.began.IsZero()
	if sick && o.opened.IsZero() {
		o.spent++
	}
	o.mu.Unlock()
	switch {
	case !sick:
		time.Sleep(20 * time.Millisecond)
		return nil
	case o.refuses:
		return worker.Unavailable(job.Destination, errHung)
	}
	<-ctx.Done()
	return ctx.Err()
}

// Observe implements [worker.Observer].
func (o *sickness) Observe(e worker.Event) {
	c, ok := e.(*worker.BreakerChanged)
	o.mu.Lock()
	defer o.mu.Unlock()
	if ok && c.To == breaker.StateOpen && o.opened.IsZero() {
		o.opened, o.reason = c.At, c.Reason
	}
}

func (o *sickness) isOpen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.opened.IsZero()
}

func (o *sickness) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.began = time.Now()
}

// P1: a destination that hangs or refuses opens its breaker, whatever the timeout and the bulkhead are, and costs few calls.
func TestBreakersOpen(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second} {
		for _, places := range []int{1, 2, 4, 8, 19} {
			for _, refuses := range []bool{false, true} {
				t.Run(fmt.Sprintf("timeout %v, bulkhead %d, refuses %t", timeout, places, refuses), func(t *testing.T) {
					t.Parallel()
					o := &sickness{refuses: refuses}
					cfg := jobtest.Config{Worker: worker.Config{Concurrency: 40, Observers: []worker.Observer{o}}}
					kind := worker.KindConfig{Timeout: timeout, Bulkhead: places, Keyed: new(false)} // others wait, so that no place is empty
					inBench(t, cfg, kind, o.handle, func(t *testing.T, b *jobtest.Bench) {
						o.begin()
						jobsTo(b, "email.test", 3*places+10)
						for range 20 {
							if b.Advance(15 * time.Second); o.isOpen() {
								break
							}
						}
						o.mu.Lock()
						defer o.mu.Unlock()
						if o.opened.IsZero() || o.spent > max(8, 2*places) {
							t.Fatalf("opened %t, %d calls", !o.opened.IsZero(), o.spent)
						}
						rounds := 3
						if places < 3 {
							rounds = 8
						}
						if took := o.opened.Sub(o.began); took > time.Duration(rounds)*timeout+10*time.Second {
							t.Errorf("opened after %v: %s", took, o.reason)
						}
					})
				})
			}
		}
	}
	// The example of the documents: an email API that takes 200 jobs a second dies, and hangs.
	t.Run("200 a second", func(t *testing.T) {
		t.Parallel()
		o := &sickness{}
		cfg := jobtest.Config{Worker: worker.Config{Concurrency: 20, Observers: []worker.Observer{o}}}
		inBench(t, cfg, worker.KindConfig{Timeout: 10 * time.Second, Keyed: new(false)}, o.handle, func(t *testing.T, b *jobtest.Bench) {
			second := func() {
				for range 100 {
					jobsTo(b, "email.test", 2)
					b.Advance(10 * time.Millisecond)
				}
			}
			for range 3 {
				second()
			}
			o.begin()
			for range 6 {
				second()
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if took := o.opened.Sub(o.began); took < 0 || took > 5*time.Second {
				t.Errorf("opened after %v (%s), want it within 5 s", took, o.reason)
			}
		})
	})
}

// A minimum of calls that a hanging destination can never reach is told by its numbers.
func TestMinimumOutOfReach(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind worker.KindConfig
		def  breaker.Config
		own  map[string]pools.DestinationConfig
		want string
	}{
		"unset":        {kind: worker.KindConfig{Bulkhead: 4}},
		"in reach":     {kind: worker.KindConfig{Bulkhead: 8, Timeout: 10 * time.Second}, def: breaker.Config{MinimumCalls: 24}},
		"out of reach": {kind: worker.KindConfig{Bulkhead: 4}, def: breaker.Config{MinimumCalls: 20}, want: `without settings of their own: min_calls 20 is never reached while jobs of kind "job" hang: with 4 at once and a timeout of 30s at most 4 calls end within the window of 30s`},
		"by the window": {
			kind: worker.KindConfig{Bulkhead: 4}, def: breaker.Config{MinimumCalls: 20, Window: 5 * time.Minute},
		},
		"by the slots": {def: breaker.Config{MinimumCalls: 21}, want: "with 20 at once"},
		"by an override": {
			kind: worker.KindConfig{Destination: "shop.test"},
			own:  map[string]pools.DestinationConfig{"shop.test": {Concurrency: new(3), Breaker: breaker.Config{MinimumCalls: 10}}}, want: `destination "shop.test": min_calls 10 is never reached while jobs of kind "job" hang: with 3 at once`,
		},
		"default that nobody falls under": {
			kind: worker.KindConfig{Destination: "https://Shop.test/hook", Bulkhead: 2}, def: breaker.Config{MinimumCalls: 20},
			own: map[string]pools.DestinationConfig{"shop.test": {Breaker: breaker.Config{MinimumCalls: 2}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := worker.NewRegistry()
			for version := range 2 { // which share a bulkhead, and are told as one
				worker.Handle(registry, worker.Kind[struct{}]{Name: "job", Version: version + 1, Config: tt.kind}, func(context.Context, struct{}) error { return nil })
			}
			w, err := worker.New(worker.Config{
				Broker: new(embedded.Broker), Registry: registry, DeadLetters: memoryRig(t).dead, Concurrency: 20,
				Destinations: pools.DestinationsConfig{Default: pools.DestinationConfig{Breaker: tt.def}, ByName: tt.own},
			})
			if err != nil {
				t.Fatal(err)
			}
			err = w.CheckBreakers()
			if err != nil && strings.Count(err.Error(), "never reached") != 1 {
				t.Errorf("told more than once: %v", err)
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err := w.CheckBreakers("job"); err != nil && tt.own == nil {
				t.Errorf("excepted: %v", err)
			}
		})
	}
}
