package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
	"github.com/caisson-go/caisson/worker"
)

// lines are a journal's, with faults in front of them.
type lines struct {
	ordering.Queues
	calls atomic.Int64
	mu    sync.Mutex
	fault func() (before, after error)
}

func (l *lines) strike() (before, after error) {
	l.calls.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		return nil, nil
	}
	return l.fault()
}

func (l *lines) Append(ctx context.Context, tenant, event string, endpoints []string) ([]ordering.Entry, error) {
	before, after := l.strike()
	if before != nil {
		return nil, before
	}
	heads, err := l.Queues.Append(ctx, tenant, event, endpoints)
	if after != nil {
		return nil, after
	}
	return heads, err
}

func (l *lines) Remove(ctx context.Context, p ordering.Entry) (ordering.Entry, bool, error) {
	before, after := l.strike()
	if before != nil {
		return ordering.Entry{}, false, before
	}
	next, ok, err := l.Queues.Remove(ctx, p)
	if after != nil {
		return ordering.Entry{}, false, after
	}
	return next, ok, err
}

func (l *lines) Stale(ctx context.Context, wait, longest time.Duration, limit int) ([]ordering.Entry, error) {
	before, after := l.strike()
	if before != nil {
		return nil, before
	}
	heads, err := l.Queues.Stale(ctx, wait, longest, limit)
	if after != nil {
		return nil, after
	}
	return heads, err
}

// ordering returns an ordering on the rig's journal, and l in front of its lines.
func (r *rig) ordering(l *lines, change func(*ordering.Config)) *ordering.Dispatcher {
	r.t.Helper()
	l.Queues = r.journal
	cfg := ordering.Config{Queues: l, Events: r.journal, Client: r.client, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	o, err := ordering.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// startOrdered runs a worker and its ordering until stop is called or the rig ends.
func (r *rig) startOrdered(o *ordering.Dispatcher) (stop func()) {
	stopWorker := r.start(nil, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			stopWorker()
			cancel()
			if err := <-done; err != nil {
				r.t.Errorf("ordering: %v", err)
			}
		})
	}
	r.closers = append(r.closers, stop)
	return stop
}

func ordered(e *webhook.Endpoint) { e.Ordered = true }

// firsts leaves the first of each.
func firsts(events []string) (list []string) {
	for _, event := range events {
		if !slices.Contains(list, event) {
			list = append(list, event)
		}
	}
	return list
}

func (r *rig) linesEmpty() bool {
	for _, e := range r.endpoints {
		if n, err := r.journal.Len(context.Background(), e.ID); err != nil || n > 0 {
			return false
		}
	}
	return true
}

// One event fails for good, others at first: all others come in the order in which they were published, each once.
func TestOrderedEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("line", ordered)
	r.add("second", ordered)
	r.add("free", nil)
	failures := map[string]int{"evt_03": 2, "evt_07": 1, "evt_11": maxAttempts}
	r.seen.answers(func(endpoint, event string) int {
		if endpoint == "line" && failures[event] > 0 {
			failures[event]--
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	o := r.ordering(&lines{}, nil)
	r.startOrdered(o)
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
	var all []string
	for i := range 20 {
		all = append(all, r.publish(p, webhook.Event{ID: fmt.Sprintf("evt_%02d", i), Type: "t", Body: []byte("{}")}, 3))
	}
	r.await("empty lines", r.linesEmpty)
	r.idle()
	if diff := cmp.Diff(slices.Delete(slices.Clone(all), 11, 12), r.seen.took("line")); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, r.seen.took("second")); diff != "" {
		t.Errorf("order of the other line (-want +got):\n%s", diff)
	}
	r.once([]string{"free"}, all...)
	if dead := r.letters(); len(dead) != 1 || dead[0].Job != "line:evt_11" {
		t.Errorf("dead letters: %+v", dead)
	}
	// What left its line is not sent again.
	for _, id := range all {
		r.publish(p, webhook.Event{ID: id, Type: "t", Body: []byte("{}")}, 3)
	}
	r.await("empty lines", r.linesEmpty)
	r.idle()
	r.once([]string{"second", "free"}, all...)
}

// Endpoints that do not ask for order cost their deliveries no look into the lines.
func TestUnorderedEndpointAsksNoLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("free", nil)
	l := &lines{}
	o := r.ordering(l, nil)
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
	stop := r.startOrdered(o)
	for i := range 10 {
		r.publish(p, webhook.Event{ID: fmt.Sprint("evt_", i), Type: "t"}, 1)
	}
	r.idle()
	stop()
	if n := l.calls.Load(); n != 1 {
		t.Errorf("the lines were asked %d times, want only the look for lost heads at the start", n)
	}
}

func TestOrderedNeedsAnOrdering(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	line := r.add("line", ordered)
	r.add("plain", nil)
	e := webhook.Event{ID: "evt_1", Type: "t"}
	for range 2 {
		_, err := r.publisher(nil).Publish(t.Context(), e)
		var failed *webhook.PublishError
		if !errors.Is(err, webhook.ErrNoOrdering) || !errors.As(err, &failed) || failed.Failed != 1 || failed.Endpoints != 2 || !strings.Contains(err.Error(), `"line"`) {
			t.Errorf("an endpoint that asks for order gets none: %v", err)
		}
	}
	down := errors.New("down")
	r.broker.SetPlan(queuetest.When(queuetest.OpPublish, func(queuetest.Point) bool { return true }, queuetest.Fault{Before: down}))
	if _, err := r.publisher(nil).Publish(t.Context(), e); !errors.Is(err, webhook.ErrNoOrdering) || !errors.Is(err, down) {
		t.Errorf("and the broker is down: %v", err)
	}
	r.broker.SetPlan(nil)
	l := &lines{Queues: r.journal}
	o := r.ordering(l, nil)
	stop := r.startOrdered(o)
	defer stop()
	r.await("the other endpoint got the event", func() bool { return len(r.seen.took("plain")) == 1 })
	again, err := journal.NewRecovery(journal.RecoveryConfig{Store: r.journal, Client: r.client, Ordering: o})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.RecoverSince(t.Context(), line, time.Now().Add(-time.Hour)); err != nil || got.Missed != 1 {
		t.Errorf("recovered %+v, %v", got, err)
	}
	r.await("the line got it", func() bool { return len(r.seen.took("line")) == 1 })
	r.idle()
	r.once([]string{"plain", "line"}, "evt_1")
	for _, cfg := range []ordering.Config{
		{}, {Queues: r.journal}, {Queues: r.journal, Events: r.journal}, {Queues: r.journal, Events: r.journal, Client: r.client, MaxAge: -1},
	} {
		if _, err := ordering.New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// jobs returns the ids of the jobs in the queue, and when their time is over.
func (r *rig) jobs(within time.Duration) (ids []string, deadlines []time.Time) {
	r.t.Helper()
	sub, err := r.broker.Subscribe(r.t.Context(), worker.DefaultQueue, queue.SubscribeConfig{Slots: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	defer sub.Close() //nolint:errcheck // leases go back
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	for {
		leases, err := sub.Receive(ctx, 100)
		if err != nil {
			return ids, deadlines
		}
		for _, l := range leases {
			env, err := l.Envelope()
			if err != nil {
				r.t.Fatal(err)
			}
			ids, deadlines = append(ids, env.ID), append(deadlines, env.Deadline)
			if err := l.Ack(context.WithoutCancel(ctx)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// A head whose job is lost is enqueued again, with the deadline of the first; one that is too old, or has no event any more, is passed.
func TestSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newBareRig(t)
		r.add("line", ordered)
		o := r.ordering(&lines{}, nil)
		p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
		for i := range 4 {
			r.publish(p, webhook.Event{ID: fmt.Sprint("evt_", i), Type: "t"}, 1)
		}
		start := time.Now()
		want := func(what string, after time.Duration, ids ...string) {
			t.Helper()
			if err := o.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, deadlines := r.jobs(time.Millisecond)
			if !slices.Equal(got, ids) {
				t.Errorf("%s: %v, want %v", what, got, ids)
			}
			for _, d := range deadlines {
				if !d.Equal(start.Add(after).Truncate(time.Millisecond)) && d.Sub(start.Add(after)).Abs() > time.Second {
					t.Errorf("%s: the deadline is %s after the start, want %s", what, d.Sub(start), after)
				}
			}
		}
		want("published", 24*time.Hour, "line:evt_0")
		time.Sleep(59 * time.Second)
		want("too early", 0)
		time.Sleep(2 * time.Second)
		want("lost", 24*time.Hour, "line:evt_0")
		time.Sleep(61 * time.Second)
		want("the second time it is twice as long", 0)
		time.Sleep(61 * time.Second)
		want("lost again", 24*time.Hour, "line:evt_0")
		time.Sleep(24 * time.Hour)
		want("too old", time.Since(start)+24*time.Hour, "line:evt_1")
		time.Sleep(2 * time.Minute)
		if err := r.journal.Expire(t.Context(), time.Hour, time.Hour); err != nil {
			t.Fatal(err)
		}
		r.publish(p, webhook.Event{ID: "evt_young", Type: "t"}, 1)
		want("events are gone", time.Since(start)+24*time.Hour, "line:evt_young")
		if n, err := r.journal.Len(t.Context(), "line"); err != nil || n != 1 {
			t.Errorf("%d wait, %v", n, err)
		}
		r.close()
	})
}

var errCrash = errors.New("crash")

// A broker that does not take the head's job fails the publishing; what waits behind it is safe without.
func TestPublishOrderedFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("line", ordered)
	l := &lines{}
	o := r.ordering(l, nil)
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
	r.broker.SetPlan(queuetest.When(queuetest.OpPublish, nil, queuetest.Fault{Before: errCrash}))
	var failed *webhook.PublishError
	if _, err := p.Publish(t.Context(), webhook.Event{ID: "evt_1", Type: "t"}); !errors.As(err, &failed) || failed.Failed != 1 || !errors.Is(err, errCrash) {
		t.Errorf("the head: %v", err)
	}
	r.publish(p, webhook.Event{ID: "evt_2", Type: "t"}, 1)
	l.fault = func() (before, after error) { return errCrash, nil }
	if _, err := p.Publish(t.Context(), webhook.Event{ID: "evt_3", Type: "t"}); !errors.As(err, &failed) || failed.Failed != 1 || !errors.Is(err, errCrash) {
		t.Errorf("no line: %v", err)
	}
	l.fault = nil
	r.broker.SetPlan(nil)
	r.publish(p, webhook.Event{ID: "evt_1", Type: "t"}, 1)
	if ids, _ := r.jobs(2 * time.Second); !slices.Equal(ids, []string{"line:evt_1"}) {
		t.Errorf("jobs %v", ids)
	}
}
