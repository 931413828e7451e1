package worker_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// poisonous are messages that cannot be read one single way: by body where they have no envelope, else by envelope.
func poisonous(t *testing.T) map[string]queue.Message {
	t.Helper()
	const rest = `"v":1,"id":"x","enqueued_at":"2000-01-01T00:00:00Z"`
	list := map[string]queue.Message{
		"no envelope, cut JSON":       {Body: []byte(`{"type":`)},
		"no envelope, empty object":   {Body: []byte(`{}`)},
		"no envelope, same key twice": {Body: []byte(`{"type":"a.ok","type":"b.ok"}`)},
		"no envelope, gzip":           {Body: gzipped(t, `{"type":"a.ok"}`)},
		"no envelope, empty":          {},
	}
	for name, envelope := range map[string]string{
		"cut":              `{"kind":`,
		"empty object":     `{}`,
		"empty":            ``,
		"kind twice":       `{` + rest + `,"kind":"a.ok","kind":"b.ok"}`,
		"kind in two ways": `{` + rest + `,"kind":"a.ok","Kind":"b.ok"}`,
		"gzip":             string(gzipped(t, `{"kind":"a.ok"}`)),
	} {
		list["envelope: "+name] = queue.Message{
			Body: []byte("\x00\xff payload of " + name), Headers: map[string]string{queue.HeaderEnvelope: envelope, "trace": "t-1"},
		}
	}
	return list
}

// What cannot be decoded is dead at once, with its bytes, is not run, and does not hold up what comes behind it.
func TestUndecodableMessagesDieOnTheirFirstDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, ran := worker.NewRegistry(), 0
		for _, kind := range []string{"a.ok", "b.ok"} {
			work(r, kind, worker.KindConfig{}, func(context.Context, *worker.Job) error { ran++; return nil })
		}
		b := jobtest.New(t, r, jobtest.Config{})
		byID := make(map[string]string)
		poison := poisonous(t)
		for name, m := range poison {
			byID["default:"+b.EnqueueRaw("", m)] = name
		}
		good := b.Enqueue(worker.NewJob{Kind: "a.ok"})
		start := time.Now()
		b.Drain()

		if took := time.Since(start); b.Attempts(good) != 1 || ran != 1 || took > 2*time.Second {
			t.Errorf("the good job ran %d times, %d handlers in all, in %s", b.Attempts(good), ran, took)
		}
		for _, e := range b.Dead() {
			name := byID[e.Job]
			delete(byID, e.Job)
			if e.Cause != dlq.CauseUndecodable || e.Error == "" || e.AttemptCount != 0 {
				t.Errorf("%s: %s after %d attempts: %q", name, e.Cause, e.AttemptCount, e.Error)
			}
			want := poison[name]
			if !bytes.Equal(want.Body, e.Message.Body) || len(want.Headers) > 0 && !cmp.Equal(want.Headers, e.Message.Headers) {
				t.Errorf("%s: kept %q with headers %q", name, e.Message.Body, e.Message.Headers)
			}
		}
		for _, name := range byID {
			t.Errorf("%s is not in the dead letters", name)
		}
		if n := len(b.Settlements("")); n != len(poison) {
			t.Errorf("%d deliveries of %d undecodable messages", n, len(poison))
		}
	})
}

// A kind that nobody knows waits for the deploy that brings it, looks few times, then dies, and never vanishes.
func TestUnknownKindWaitsThenDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := worker.NewRegistry()
		work(r, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
		var log bytes.Buffer
		b := jobtest.New(t, r, jobtest.Config{Worker: worker.Config{Observers: []worker.Observer{worker.NewLogObserver(slog.New(slog.NewTextHandler(&log, nil)))}}})
		id := b.Enqueue(worker.NewJob{Kind: "nope.v9", Payload: []byte("as it was")})
		start := time.Now()
		b.Drain()
		e := b.DeadOne()
		if e.Cause != dlq.CauseUnknownKind || e.Kind != "nope.v9" || string(e.Message.Body) != "as it was" {
			t.Errorf("dead of %s, kind %q, body %q", e.Cause, e.Kind, e.Message.Body)
		}
		if waited := time.Since(start); waited < 15*time.Minute || waited > 25*time.Minute {
			t.Errorf("dead after %s, the setting is 15m", waited)
		}
		if n := len(b.Settlements(id)); n >= 10 {
			t.Errorf("%d deliveries", n)
		}
		if first, _, _ := strings.Cut(log.String(), "\n"); !strings.Contains(first, "level=INFO") || !strings.Contains(first, "reason=unknown_kind") ||
			!strings.Contains(first, "nope.v9") {
			t.Errorf("what a mistyped kind says first: %s", first)
		}
	})
}

func TestUnknownKindRunsOnceItsHandlerIsDeployed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := worker.NewRegistry()
		work(r, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
		b := jobtest.New(t, r, jobtest.Config{})
		id := b.Enqueue(worker.NewJob{Kind: "new.kind"})
		b.Advance(5 * time.Minute)
		work(r, "new.kind", worker.KindConfig{MaxAttempts: 1}, func(context.Context, *worker.Job) error { return nil })
		b.Restart()
		b.Drain()
		all := b.Settlements(id)
		if last := all[len(all)-1]; last.Outcome != worker.OutcomeSucceeded || last.Job.Attempt != 1 || len(b.Dead()) > 0 {
			t.Errorf("after the deploy: attempt %d: %s", last.Job.Attempt, b.Where(id))
		}
	})
}
