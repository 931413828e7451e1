package faultlab

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// switchable is an embedded queue behind a plan that can be changed while it is used.
type switchable struct {
	plan atomic.Pointer[queuetest.Plan]
	path string
}

func newSwitchable(t *testing.T) *switchable {
	return &switchable{path: filepath.Join(t.TempDir(), "queue.db")}
}

func (s *switchable) rig() Rig { return Rig{Open: s.open, Lease: time.Second, Jobs: 200} }

func (s *switchable) open(t testing.TB) queue.Broker {
	t.Helper()
	b, err := embedded.Open(t.Context(), embedded.Config{Path: s.path})
	if err != nil {
		t.Fatal(err)
	}
	return queuetest.NewFaultBroker(b, func(p queuetest.Point) queuetest.Fault {
		if plan := s.plan.Load(); plan != nil {
			return (*plan)(p)
		}
		return queuetest.Fault{}
	})
}

// during puts plan in force for a second.
func (s *switchable) during(name string, plan queuetest.Plan) Fault {
	return Fault{Name: name, Inject: func(t testing.TB, _ string) {
		s.plan.Store(&plan)
		defer s.plan.Store(nil)
		select {
		case <-time.After(time.Second):
		case <-t.Context().Done():
		}
	}}
}

// every strikes each nth point of the ops with f.
func every(n int, f queuetest.Fault, ops ...queuetest.Op) queuetest.Plan {
	return func(p queuetest.Point) queuetest.Fault {
		if p.N%n == 0 && slices.Contains(ops, p.Op) {
			return f
		}
		return queuetest.Fault{}
	}
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	const publish, receive, deliver = queuetest.OpPublish, queuetest.OpReceive, queuetest.OpDeliver
	const extend, settle = queuetest.OpExtend, queuetest.OpSettle
	for name, plan := range map[string]queuetest.Plan{
		"broker away":      every(1, queuetest.Fault{Before: queue.ErrUnavailable}, publish, receive, extend, settle),
		"answers lost":     every(3, queuetest.Fault{After: queue.ErrUnavailable}, publish, settle),
		"everything twice": every(2, queuetest.Fault{Duplicate: true}, publish, deliver),
		"leases lost":      every(4, queuetest.Fault{Expire: true}, deliver, settle),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwitchable(t)
			Trial(t, s.rig(), s.during(name, plan))
		})
	}
}

// forgetful is a broker that takes some retries for acks.
type forgetful struct{ queue.Broker }

func (b forgetful) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := b.Broker.Subscribe(ctx, name, cfg)
	return forgetfulSubscription{sub}, err
}

type forgetfulSubscription struct{ queue.Subscription }

func (s forgetfulSubscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	leases, err := s.Subscription.Receive(ctx, most)
	for _, l := range leases {
		if strings.Contains(l.Headers[queue.HeaderEnvelope], "job-00003") {
			l.Decorate(func(h queue.Handle) queue.Handle { return forgetfulHandle{h} })
		}
	}
	return leases, err
}

type forgetfulHandle struct{ queue.Handle }

func (h forgetfulHandle) Settle(ctx context.Context, _ queue.Settlement) error {
	return h.Handle.Settle(ctx, queue.Settlement{Action: queue.ActionAck})
}

// TestTrialBites breaks what a trial must find.
func TestTrialBites(t *testing.T) {
	t.Parallel()
	t.Run("a lost job", func(t *testing.T) {
		t.Parallel()
		s := newSwitchable(t)
		rig := s.rig()
		rig.Open = func(t testing.TB) queue.Broker { return forgetful{s.open(t)} }
		rig.Limit = 10 * time.Second
		row, log := recorded(t, rig, s.during("nothing", every(1, queuetest.Fault{})))
		if row.Lost != 1 || !strings.Contains(log, "job-00003: neither completed nor dead") {
			t.Errorf("row %+v, recorded: %s", row, log)
		}
	})
	t.Run("goroutines that stay", func(t *testing.T) {
		t.Parallel()
		s := newSwitchable(t)
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		rig := s.rig()
		rig.Rest = time.Second
		row, log := recorded(t, rig, Fault{Name: "leak", Inject: func(testing.TB, string) {
			for range slack + 1 {
				go func() { <-end }()
			}
		}})
		if row.Goroutines[1] <= row.Goroutines[0]+slack || !strings.Contains(log, "goroutines before the fault") {
			t.Errorf("row %+v, recorded: %s", row, log)
		}
	})
}

// recorded runs a trial that is to fail, and returns what it reported.
func recorded(t *testing.T, rig Rig, f Fault) (row Row, log string) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // Fatal ends the goroutine
		defer close(done)
		row = try(r, rig.withDefaults(), f)
	}()
	<-done
	return row, r.log.String()
}

// recorder is a testing.TB that notes failures instead of failing.
type recorder struct {
	testing.TB
	mu  sync.Mutex
	log strings.Builder
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.WriteString(s + "\n")
}

func (r *recorder) Error(args ...any)            { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.note(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)); runtime.Goexit() }
func (r *recorder) Logf(string, ...any)          {}
