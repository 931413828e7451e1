package replay_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

// Field cases G1 and G3 on real brokers: each job returns to its own queue with all that it had, also after it has died again with an error
// that is too long to keep; what came from nowhere stays.
func TestReplayOnEveryBroker(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w world) {
		err := w.open(t.Context(), func(store dlq.Store, b queue.Broker) error {
			w.testRounds(t, store, b, w.queues(t, b, "q1", "q2"))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

const eachQueue = 3

func (w world) testRounds(t *testing.T, store dlq.Store, b queue.Broker, names []string) {
	t.Helper()
	want := make(map[string]map[string]dlq.Entry) // by queue and job
	var entries []dlq.Entry
	for i := range eachQueue * len(names) {
		e := w.letter(t, i, names[i%len(names)])
		e.Error = strings.Repeat("the same again; ", 30_000)
		e.Message.Body = append(e.Message.Body, make([]byte, 100<<10)...)
		for h := range 10 {
			e.Message.Headers[fmt.Sprintf("x-header-%d", h)] = fmt.Sprint(h)
		}
		if want[e.Queue] == nil {
			want[e.Queue] = make(map[string]dlq.Entry)
		}
		want[e.Queue][e.Job] = e
		entries = append(entries, e)
	}
	foreign := dlq.Entry{Job: "foreign", State: dlq.StateDead, Cause: dlq.CauseUndecodable, Message: queue.Message{Body: []byte("from nowhere")}}
	dlqtest.PutAll(t, store, append(entries, foreign)...)
	for run := 1; run <= 2; run++ {
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b})
		if err != nil || report.Replayed != len(entries) || report.Refused != 1 || report.Left != 0 {
			t.Fatalf("replay %d: %+v, %v", run, report, err)
		}
		for _, name := range names {
			messages := take(t, b, name, eachQueue)
			if len(messages) != eachQueue {
				t.Errorf("replay %d: %d messages in %s, want %d", run, len(messages), name, eachQueue)
			}
			for _, m := range messages {
				dieAgain(t, store, m, want[name], run)
			}
		}
	}
	if e, err := store.Get(t.Context(), "foreign.0"); err != nil || e.State != dlq.StateDead {
		t.Errorf("the foreign message: %+v, %v", e, err)
	}
}

// dieAgain checks a replayed message against what was there before, and puts it into the dead letters again.
func dieAgain(t *testing.T, store dlq.Store, m queue.Message, want map[string]dlq.Entry, run int) {
	t.Helper()
	env, err := m.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	e, ok := want[env.ID]
	if !ok || env.Run != run || string(m.Body) != string(e.Message.Body) {
		t.Errorf("job %s came as run %d with %d bytes, want run %d and %d bytes", env.ID, env.Run, len(m.Body), run, len(e.Message.Body))
		return
	}
	if diff := cmp.Diff(bare(e.Message.Headers), bare(m.Headers)); diff != "" {
		t.Errorf("headers of job %s (-want +got):\n%s", env.ID, diff)
	}
	e.Run, e.Message = env.Run, m
	dlqtest.PutAll(t, store, e)
	kept, err := store.Get(t.Context(), dlq.EntryID(env.ID, run))
	if err != nil || string(kept.Message.Body) != string(m.Body) || !maps.Equal(kept.Message.Headers, m.Headers) || kept.Error == "" || len(kept.Error) > dlq.MaxError {
		t.Errorf("job %s is kept with %d bytes, headers %v and an error of %d bytes, %v", env.ID, len(kept.Message.Body), kept.Message.Headers, len(kept.Error), err)
	}
}

// bare are the headers without the envelope, which tells the run.
func bare(headers map[string]string) map[string]string {
	headers = maps.Clone(headers)
	delete(headers, queue.HeaderEnvelope)
	return headers
}
