package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
)

type order struct {
	ID     string `json:"id"`
	Amount any    `json:"amount"`
}

func TestTypedHandlerGetsItsPayloadWithEveryDigit(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	kind := worker.Kind[order]{Name: "order.paid", Key: func(o order) string { return "order-" + o.ID }}
	got := make(chan order, 1)
	worker.Handle(registry, kind, func(ctx context.Context, o order) error {
		if j := worker.JobFrom(ctx); j.Key != "order-7" || j.Attempt != 1 || j.MaxAttempts != 4 || j.Token == 0 {
			return worker.Cancel(fmt.Errorf("job %+v", j))
		}
		got <- o
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "order.paid", Payload: json.RawMessage(`{"id":"7","amount":9007199254740993.10,"new":1}`)})
		b.after(time.Second)
		want := order{ID: "7", Amount: json.Number("9007199254740993.10")}
		if diff := cmp.Diff(want, <-got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPayloadsThatCannotBeReadDieAtOnceWithTheirBytes(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	never := func(context.Context, order) error { return errors.New("must not run") }
	worker.Handle(registry, worker.Kind[order]{Name: "lenient"}, never)
	worker.Handle(registry, worker.Kind[order]{Name: "strict", Strict: true}, never)
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		for kind, payload := range map[string]string{"lenient": `{"id":`, "strict": `{"id":"1","extra":true}`} {
			id := b.enqueue(worker.NewJob{Kind: kind, Payload: []byte(payload)})
			b.after(time.Second)
			e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
			if err != nil || e.Cause != dlq.CauseUndecodable || string(e.Message.Body) != payload || e.AttemptCount != 0 {
				t.Errorf("%s: entry %+v, error %v", kind, e, err)
			}
		}
	})
}

func TestTrailingDataIsNoPayload(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[order]{Name: "k"}, func(context.Context, order) error { return nil })
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k", Payload: []byte(`{"id":"1"} {"id":"2"}`)})
		b.after(time.Second)
		if e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0)); err != nil || !strings.Contains(e.Error, "data after the JSON value") {
			t.Errorf("entry %+v, error %v", e, err)
		}
	})
}

func TestPanicAndGoexitAreKeptAsFailures(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			registry := worker.NewRegistry()
			kind := worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{MaxAttempts: 2}}
			worker.Handle(registry, kind, func(context.Context, []byte) error { handler(); return nil })
			inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
				id := b.enqueue(worker.NewJob{Kind: "k"})
				b.after(2 * time.Minute)
				e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
				if err != nil || e.Cause != dlq.CausePanic || len(e.Attempts) != 2 || e.AttemptCount != 2 {
					t.Fatalf("entry %+v, error %v", e, err)
				}
				want := map[string]string{"panic": "handler_test.go", "goexit": "Goexit"}[name]
				if !strings.Contains(e.Error, want) {
					t.Errorf("error %q does not mention %q", e.Error, want)
				}
				if ok := b.enqueue(worker.NewJob{Kind: "k"}); ok == "" {
					t.Error("the worker does not go on")
				}
				b.after(2 * time.Minute)
			})
		})
	}
}

func TestMiddlewareRunsOutsideInOncePerAttempt(t *testing.T) {
	t.Parallel()
	var trace []string
	mark := func(name string) func(worker.Handler) worker.Handler {
		return func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, job *worker.Job) error {
				trace = append(trace, name+" "+job.Kind)
				defer func() { trace = append(trace, "/"+name) }()
				return next(ctx, job)
			}
		}
	}
	registry := worker.NewRegistry()
	registry.Use(mark("outer"), mark("middle"))
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k"}, func(context.Context, []byte) error {
		trace = append(trace, "handler")
		return nil
	}, mark("inner"))
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k"})
		b.after(time.Second)
		want := []string{"outer k", "middle k", "inner k", "handler", "/inner", "/middle", "/outer"}
		if diff := cmp.Diff(want, trace); diff != "" {
			t.Error(diff)
		}
	})
}

func TestVersionsAndAliases(t *testing.T) {
	t.Parallel()
	var ran []string
	handler := func(name string) func(context.Context, []byte) error {
		return func(ctx context.Context, _ []byte) error {
			ran = append(ran, fmt.Sprintf("%s as %s", name, worker.JobFrom(ctx).Kind))
			return nil
		}
	}
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "mail", Aliases: []string{"old.mail"}}, handler("any"))
	worker.Handle(registry, worker.Kind[[]byte]{Name: "mail", Version: 2}, handler("two"))
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		for _, job := range []worker.NewJob{
			{Kind: "mail"}, {Kind: "mail", Version: 1}, {Kind: "mail", Version: 2}, {Kind: "old.mail"}, {Kind: "old.mail", Version: 2},
		} {
			b.enqueue(job)
			b.after(time.Second)
		}
		want := []string{"any as mail", "any as mail", "two as mail", "any as mail", "any as mail"}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Error(diff)
		}
	})
}

func TestResultIsToldToALaterDeliveryOfTheKey(t *testing.T) {
	t.Parallel()
	calls := 0
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k"}, func(ctx context.Context, _ []byte) error {
		calls++
		worker.JobFrom(ctx).SetResult([]byte("receipt 17"))
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", ID: "a", Key: "same"})
		b.after(time.Second)
		b.enqueue(worker.NewJob{Kind: "k", ID: "b", Key: "same"})
		b.after(time.Second)
		s := b.settled("b")
		if calls != 1 || len(s) != 1 || s[0].Outcome != worker.OutcomeDuplicate || s[0].Result == nil || string(s[0].Result.Data) != "receipt 17" {
			t.Errorf("%d calls, settlements of b: %+v", calls, s)
		}
	})
}

func TestPanicWhileReadingThePayloadKillsOnlyTheJob(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	kind := worker.Kind[order]{Name: "k", Key: func(o order) string { panic("no key for " + o.ID) }}
	worker.Handle(registry, kind, func(context.Context, order) error { return nil })
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k", Payload: order{ID: "7"}})
		b.after(time.Second)
		e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
		if err != nil || e.Cause != dlq.CauseUndecodable || !strings.Contains(e.Error, "no key for 7") {
			t.Errorf("entry %+v, error %v", e, err)
		}
	})
}

func TestSnoozeWithoutATimeIsNoHotLoop(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	calls := 0
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k"}, func(context.Context, []byte) error {
		calls++
		return worker.Snooze(0, "not yet")
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k"})
		b.after(30 * time.Second)
		if calls < 2 || calls > 31 {
			t.Errorf("%d calls in 30 s", calls)
		}
		for _, s := range b.settled(id) {
			if s.Job.Attempt != 1 || s.Reason != worker.ReasonSnoozed {
				t.Errorf("settled %+v: a snooze spends nothing", s)
			}
		}
	})
}
