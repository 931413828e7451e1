package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
)

// touchyError is an error type as programs have them: its methods do not expect a nil pointer.
type touchyError struct{ text string }

func (e *touchyError) Error() string { return e.text }

// An error that panics when it is looked at fails its attempt and no more: it must not take the process with it.
func TestErrorsThatCannotBeReadFailTheAttempt(t *testing.T) {
	t.Parallel()
	var nilStated *worker.Error
	var nilTouchy *touchyError
	for name, c := range map[string]struct {
		err      error
		attempts int
		cause    dlq.Cause
	}{
		"stated without a reason":   {&worker.Error{Outcome: worker.OutcomeFailed}, 2, dlq.CauseExhausted},
		"rejected without a reason": {&worker.Error{Outcome: worker.OutcomeRejected}, 1, dlq.CauseRejected},
		"nil pointer of our own":    {nilStated, 2, dlq.CausePanic},
		"nil pointer of theirs":     {nilTouchy, 2, dlq.CausePanic},
		"wrapped":                   {errors.Join(errors.New("and"), nilTouchy), 2, dlq.CausePanic},
	} {
		t.Run(name, func(t *testing.T) {
			registry := worker.NewRegistry()
			kind := worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{MaxAttempts: 2}}
			worker.Handle(registry, kind, func(context.Context, []byte) error { return c.err })
			inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
				id := b.enqueue(worker.NewJob{Kind: "k"})
				b.after(time.Hour)
				e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
				if err != nil || e.Cause != c.cause || e.AttemptCount != c.attempts || e.Error == "" {
					t.Errorf("entry %+v, error %v", e, err)
				}
			})
		})
	}
}

// A payload of type any may be null, or nothing at all.
func TestHandlerOfAnyTakesNull(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string][]byte{"null": []byte("null"), "empty": nil} {
		t.Run(name, func(t *testing.T) {
			registry := worker.NewRegistry()
			calls := 0
			worker.Handle(registry, worker.Kind[any]{Name: "k"}, func(_ context.Context, v any) error {
				if calls++; v != nil {
					t.Errorf("payload %v", v)
				}
				return nil
			})
			inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
				id := b.enqueue(worker.NewJob{Kind: "k", Payload: payload})
				b.after(time.Second)
				if s := b.settled(id); calls != 1 || len(s) != 1 || s[0].Outcome != worker.OutcomeSucceeded {
					t.Errorf("%d calls, settled %+v", calls, s)
				}
			})
		})
	}
}

// A key function that ends its goroutine costs its job, not a slot of the worker.
func TestGoexitWhileReadingThePayloadKillsOnlyTheJob(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	kind := worker.Kind[order]{Name: "k", Key: func(o order) string {
		if o.ID == "bad" {
			runtime.Goexit()
		}
		return o.ID
	}}
	worker.Handle(registry, kind, func(context.Context, order) error { return nil })
	inBubble(t, worker.Config{Registry: registry, Concurrency: 1}, func(b *bubble) {
		bad := b.enqueue(worker.NewJob{Kind: "k", Payload: order{ID: "bad"}})
		good := b.enqueue(worker.NewJob{Kind: "k", Payload: order{ID: "good"}})
		b.after(time.Second)
		if e, err := b.dead.Get(b.ctx, dlq.EntryID(bad, 0)); err != nil || e.Cause != dlq.CauseUndecodable {
			t.Errorf("entry %+v, error %v", e, err)
		}
		if s := b.settled(good); len(s) != 1 || s[0].Outcome != worker.OutcomeSucceeded {
			t.Errorf("the job behind it: %+v", s)
		}
	})
}

// panicky panics at every settlement.
type panicky struct{}

func (panicky) Observe(e worker.Event) {
	if _, ok := e.(*worker.Settled); ok {
		panic("no more room for numbers")
	}
}

// A panic in an observer is told, without the job's payload, and costs the job nothing.
func TestObserverPanicTellsNoPayload(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k"}, func(context.Context, []byte) error { return nil })
	cfg := worker.Config{Registry: registry, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Concurrency: 1}
	inBubbleObservedBy(t, cfg, panicky{}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", Payload: []byte("secret"), Headers: map[string]string{"token": "secret"}})
		b.after(time.Second)
		depth, err := b.broker.Depth(b.ctx, worker.DefaultQueue)
		if err != nil || depth.Ready.N+depth.Delayed.N+depth.InFlight.N != 0 {
			t.Errorf("depth %+v, error %v", depth, err)
		}
	})
	text := log.String()
	if !strings.Contains(text, "no more room for numbers") || !strings.Contains(text, "Settled") {
		t.Errorf("log does not name panic and event: %s", text)
	}
	for _, leak := range []string{"secret", "c2VjcmV0"} { // the second is base64 of the first
		if strings.Contains(text, leak) {
			t.Errorf("log holds the payload or a header: %s", text)
		}
	}
}
