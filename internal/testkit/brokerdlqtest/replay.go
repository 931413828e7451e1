package brokerdlqtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/queue"
)

func replayTests() []testCase {
	return []testCase{
		{"Replay/as the next run", testNextRun},
		{"Replay/each to its own queue", testOwnQueue},
		{"Replay/only what matches", testOnlyMatching},
		{"Replay/copies and second payloads", testCopies},
		{"Replay/what dies again is left", testDiesAgain},
		{"Replay/refused ones stay", testRefusedStay},
		{"Replay/stops where too many are kept", testReplayBound},
		{"Replay/rate", testRate},
	}
}

func testNextRun(e *env) {
	entry := e.letter("again", nil)
	e.put(entry)
	report, err := e.replay(e.Context(), e.letters, replay.Config{})
	if err != nil || report.Matched != 1 || report.Replayed != 1 || report.Left != 0 || report.Incomplete {
		e.Fatalf("report %+v, %v", report, err)
	}
	got := e.received(e.queue)
	if len(got) != 1 {
		e.Fatalf("%d messages were published", len(got))
	}
	env, err := got[0].Envelope()
	if err != nil {
		e.Fatal(err)
	}
	want, err := entry.Message.Envelope()
	if err != nil {
		e.Fatal(err)
	}
	want.Run, want.AttemptBase, want.NotBefore = 1, 0, env.NotBefore
	if diff := cmp.Diff(want, env); diff != "" || string(got[0].Body) != string(entry.Message.Body) {
		e.Errorf("body %q, envelope (-want +got):\n%s", got[0].Body, diff)
	}
	if len(got[0].Headers) != 2 || got[0].Headers["reply-to"] != "somewhere" {
		e.Errorf("headers %v, want the envelope and reply-to", got[0].Headers)
	}
	report, err = e.replay(e.Context(), e.letters, replay.Config{})
	if err != nil || report.Matched != 0 || len(e.received(e.queue)) != 0 {
		e.Errorf("a second replay added something: %+v, %v", report, err)
	}
	// It dies again, with full data, and goes once more.
	second := entry
	second.Run, second.Message = 1, got[0]
	e.put(second)
	if again := e.one(); again.ID != "again.1" || again.Error != entry.Error || again.Cause != entry.Cause || again.Replays != 1 {
		e.Errorf("second death: %+v", again)
	}
	if _, err = e.replay(e.Context(), e.letters, replay.Config{}); err != nil {
		e.Fatal(err)
	}
	e.wantRuns(e.queue, "again.2")
}

// alone is a broker that lists no queues, as some cannot.
type alone struct{ queue.Broker }

func (alone) Queues(context.Context) ([]queue.QueueInfo, error) { return nil, nil }

// Field case G3.
func testOwnQueue(e *env) {
	other := e.h.Queue(e.T, e.broker, "other")
	third := e.h.Queue(e.T, e.broker, "third")
	var mine, its []dlq.Entry
	for i := range 6 {
		entry := e.letter(fmt.Sprintf("job-%d", i), nil)
		if i%2 == 1 {
			entry.Queue = other
			its = append(its, entry)
		} else {
			mine = append(mine, entry)
		}
		e.put(entry)
	}
	letters := e.open(brokerdlq.Config{Queues: []string{e.queue, other, third}})
	// A broker may hold queues of others: the filter selects these jobs alone.
	f := dlq.Filter{IDs: []string{"job-0.0", "job-1.0", "job-2.0", "job-3.0", "job-4.0", "job-5.0"}}
	for _, name := range []string{e.queue, other} {
		f.Queue = name
		if report, _, err := letters.Replay(e.Context(), replay.Config{Filter: f}); err != nil || report.Replayed != 3 {
			e.Fatalf("report %+v, %v", report, err)
		}
	}
	e.wantRuns(e.queue, next(mine)...)
	e.wantRuns(other, next(its)...)
	e.wantRuns(third)

	// One that is in a dead-letter queue which several share goes where it came from, or where it is told to.
	shared := e.letter("shared", nil)
	shared.Queue = other
	e.put(shared)
	e.moved(e.received(queue.DLQ(other))...)
	letters = e.open(brokerdlq.Config{Broker: alone{e.broker}, Queues: []string{e.queue}})
	if report, _, err := letters.Replay(e.Context(), replay.Config{}); err != nil || report.Replayed != 1 {
		e.Errorf("report %+v, %v", report, err)
	}
	e.wantRuns(e.queue)
	e.wantRuns(other, "shared.1")
}

func testOnlyMatching(e *env) {
	entries := e.some(e.h.Jobs)
	e.put(entries...)
	sms := ofKind(entries, "sms.send")
	report, err := e.replay(e.Context(), e.letters, replay.Config{Filter: dlq.Filter{Kind: "sms.send"}, ChunkSize: 7})
	if err != nil || report.Matched != len(sms) || report.Replayed != len(sms) || report.PassedOver != len(entries)-len(sms) {
		e.Errorf("report %+v, %v", report, err)
	}
	e.wantRuns(e.queue, next(sms)...)
	e.wantLeft(len(entries) - len(sms))
}

// A dead letter that was put twice goes once; another payload under the same id is another letter.
func testCopies(e *env) {
	entry := e.letter("twice", nil)
	other := e.letter("twice", func(_ *queue.Envelope, entry *dlq.Entry) { entry.Message.Body = []byte("another payload") })
	e.put(entry, entry, other)
	e.put(entry)
	report, err := e.replay(e.Context(), e.letters, replay.Config{Filter: dlq.Filter{IDs: []string{"twice.0"}}})
	if err != nil || report.Replayed != 2 {
		e.Errorf("report %+v, %v", report, err)
	}
	bodies := map[string]int{}
	for _, m := range e.received(e.queue) {
		bodies[string(m.Body)]++
	}
	if len(bodies) != 2 || bodies["another payload"] != 1 || bodies[string(entry.Message.Body)] != 1 {
		e.Errorf("published %v", bodies)
	}
	e.wantLeft(0)
}

// What comes after the start is not replayed, whatever the clocks say: a job that dies at once must not go round.
func testDiesAgain(e *env) {
	entries := e.some(10)
	e.put(entries...)
	behind := e.open(brokerdlq.Config{Now: func() time.Time { return time.Now().Add(-time.Hour) }}) // of a worker whose clock is late
	died := 0
	report, err := e.replay(e.Context(), e.letters, replay.Config{ChunkSize: 2, Progress: func(replay.Report) {
		for _, m := range e.received(e.queue) {
			env, err := m.Envelope()
			if err != nil {
				e.Fatal(err)
			}
			again := e.letter(env.ID, nil)
			again.Run, again.Message = env.Run, m
			letters := e.letters
			if died%2 == 0 {
				letters = behind
			}
			died++
			if err := errors.Join(letters.Put(e.Context(), []dlq.Entry{again})...); err != nil {
				e.Fatal(err)
			}
		}
	}})
	if err != nil || report.Replayed != 10 || died != 10 {
		e.Errorf("%d died again; report %+v, %v", died, report, err)
	}
	left := e.wantLeft(len(entries))
	for _, id := range next(entries) {
		if left[id].ID == "" {
			e.Errorf("%s is not among the dead letters", id)
		}
	}
}

func testRefusedStay(e *env) {
	late := e.letter("late", func(env *queue.Envelope, _ *dlq.Entry) { env.Deadline = time.Now().Add(-time.Minute) })
	e.put(late, e.letter("good", nil))
	report, err := e.replay(e.Context(), e.letters, replay.Config{})
	if err != nil || report.Replayed != 1 || report.Refused != 1 || report.Left != 0 || !strings.Contains(report.Problems[0].Error, "deadline passed") {
		e.Errorf("report %+v, %v", report, err)
	}
	if got := e.one(); got.ID != "late.0" {
		e.Errorf("left %s", got.ID)
	}
	report, err = e.replay(e.Context(), e.letters, replay.Config{DropDeadline: true})
	if err != nil || report.Replayed != 1 {
		e.Errorf("without its deadline: %+v, %v", report, err)
	}
	e.wantRuns(e.queue, "good.1", "late.1")
}

func testReplayBound(e *env) {
	entries := e.some(30)
	e.put(entries...)
	letters := e.open(brokerdlq.Config{MaxKept: 8})
	report, err := e.replay(e.Context(), letters, replay.Config{Filter: dlq.Filter{Kind: "sms.send"}})
	if !errors.Is(err, brokerdlq.ErrTooMany) || !strings.Contains(err.Error(), "import") || !report.Incomplete {
		e.Errorf("report %+v, %v", report, err)
	}
	if got := len(e.received(e.queue)); got != report.Replayed || got > 10 {
		e.Errorf("%d messages were published, the report says %d", got, report.Replayed)
	}
	e.wantLeft(30 - report.Replayed)
}

func testRate(e *env) {
	e.put(e.some(5)...)
	start := time.Now()
	report, err := e.replay(e.Context(), e.letters, replay.Config{Rate: 10})
	if err != nil || report.Replayed != 5 {
		e.Errorf("report %+v, %v", report, err)
	}
	if took := time.Since(start); took < 400*time.Millisecond {
		e.Errorf("5 jobs at 10 a second took %v", took)
	}
}
