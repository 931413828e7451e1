package brokerdlqtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/queue"
)

func putTests() []testCase {
	return []testCase{
		{"Put/everything comes back", testRoundTrip},
		{"Put/300 KB error is cut", testLongError},
		{"Put/ten headers", testTenHeaders},
		{"Put/message near the limit", testNearLimit},
		{"Put/held and bad ones are refused alone", testRefused},
		{"Put/a message that was moved back by hand", testMovedBack},
		{"Depth", testDepth},
	}
}

func testRoundTrip(e *env) {
	want := e.letter("round-trip", func(env *queue.Envelope, entry *dlq.Entry) {
		env.Run = 2
		entry.Group = "order 7"
		entry.Message.Headers = map[string]string{"note": "as it was"}
	})
	before := time.Now().Add(-time.Second)
	e.put(want)
	got := e.one()
	want.ID, want.Replays, want.Fingerprint = "round-trip.2", 2, dlq.FingerprintError(want.Error)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dlq.Entry{}, "StoredAt", "ChangedAt")); diff != "" {
		e.Errorf("entry changed (-put +got):\n%s", diff)
	}
	if got.StoredAt.Before(before) || time.Now().Before(got.StoredAt) {
		e.Errorf("stored at %v", got.StoredAt)
	}
}

// Field case G1 (a).
func testLongError(e *env) {
	for name, text := range map[string]string{"letters": strings.Repeat("ä€𝄞", 34_000), "controls": strings.Repeat("\x01", 300_000), "bytes": "\xff\x00"} {
		entry := e.letter("long-"+name, func(_ *queue.Envelope, entry *dlq.Entry) {
			entry.Error = text
			entry.Attempts = nil
			for i := range 500 {
				entry.Attempts = append(entry.Attempts, dlq.FailedAttempt{Number: i + 1, Started: time.Now(), Ended: time.Now(), Error: text})
			}
		})
		e.put(entry)
	}
	for id, got := range e.sample(e.all()) {
		if len(got.Error) > dlq.MaxError || !utf8.ValidString(got.Error) || got.Error == "" || got.Cause != dlq.CauseExhausted {
			e.Errorf("%s: cause %s, error of %d bytes, valid %v", id, got.Cause, len(got.Error), utf8.ValidString(got.Error))
		}
		if n := len(got.Attempts); n > 0 && got.Attempts[n-1].Number != 500 {
			e.Errorf("%s: the last attempt that was kept is number %d, want the last", id, got.Attempts[n-1].Number)
		}
	}
}

// Field case G1 (b): a foreign message with as many headers as SQS takes comes back from a replay as it was.
func testTenHeaders(e *env) {
	m := queue.Message{Body: []byte("foreign"), Headers: map[string]string{}}
	for i := range 10 {
		m.Headers[fmt.Sprintf("h%d", i)] = fmt.Sprintf("value %d", i)
	}
	e.put(dlq.Entry{Job: e.queue + ":1", State: dlq.StateDead, Queue: e.queue, Kind: "legacy", Cause: dlq.CauseRejected, Error: "no", Message: m})
	got := e.one()
	if diff := cmp.Diff(m, got.Message); diff != "" || got.Kind != "legacy" || got.Cause != dlq.CauseRejected || got.Job != e.queue+":1" {
		e.Errorf("entry %+v; message (-want +got):\n%s", got, diff)
	}
	report, err := e.replay(e.Context(), e.letters, replay.Config{})
	if err != nil || report.Replayed != 1 {
		e.Fatalf("report %+v, %v", report, err)
	}
	if diff := cmp.Diff([]queue.Message{m}, e.received(e.queue)); diff != "" {
		e.Errorf("replayed message (-want +got):\n%s", diff)
	}
}

// Field case G1 (c): what the queue took, the dead letters take.
func testNearLimit(e *env) {
	limit := e.broker.Capabilities(e.queue).MaxBody
	if limit == 0 {
		limit = 1 << 20 // nothing to be near to; a large message then
	}
	patient := e.open(brokerdlq.Config{Idle: time.Minute}) // many megabytes take their time on a busy machine
	for _, room := range []int{100, 700, 3000} {
		entry := e.letter(fmt.Sprint("near-", room), func(_ *queue.Envelope, entry *dlq.Entry) {
			entry.Error = strings.Repeat("e", 2000)
			entry.Message.Body = []byte(strings.Repeat("x", limit))
		})
		e.shrink(&entry.Message, room)
		e.put(entry)
		sample, _, err := patient.Sample(e.Context(), dlq.Filter{Queue: e.queue, IDs: []string{entry.Job + ".0"}}, 1)
		if err != nil || len(sample) != 1 {
			e.Fatalf("%d bytes below the limit: %d entries, %v", room, len(sample), err)
		}
		got := sample[0]
		if len(got.Message.Body) != len(entry.Message.Body) || !cmp.Equal(entry.Message.Headers, got.Message.Headers) {
			e.Errorf("%d bytes below the limit: the message changed", room)
		}
		e.Logf("%d bytes below the limit: cause %s, error of %d bytes, %d attempts", room, got.Cause, len(got.Error), len(got.Attempts))
	}
}

// shrink cuts a body until the queue takes the message with room bytes to spare. Brokers count headers in their own ways.
func (e *env) shrink(m *queue.Message, room int) {
	e.Helper()
	for range 3 {
		err := e.broker.Publish(e.Context(), e.queue, []queue.Publication{{Message: *m, Group: "g", DedupID: rand.Text()}})[0].Err
		var large *queue.TooLargeError
		switch {
		case err == nil:
			return
		case !errors.As(err, &large):
			e.Fatal(err)
		}
		m.Body = m.Body[:len(m.Body)-(large.Size-large.Limit)-room]
	}
	e.Fatal("the queue takes no message")
}

func testRefused(e *env) {
	held, noJob, noQueue, good := e.letter("held", nil), e.letter("bad", nil), e.letter("lost", nil), e.letter("good", nil)
	held.State, noJob.Job, noQueue.Queue = dlq.StateHeld, "", ""
	errs := e.letters.Put(e.Context(), []dlq.Entry{held, noJob, good, noQueue})
	if !errors.Is(errs[0], brokerdlq.ErrNoHold) || errs[1] == nil || errs[2] != nil || errs[3] == nil {
		e.Errorf("put answers %v", errs)
	}
	if got := e.one(); got.ID != "good.0" {
		e.Errorf("put %s", got.ID)
	}
	if errs := e.letters.Put(e.Context(), nil); len(errs) != 0 {
		e.Errorf("an empty batch got %d answers", len(errs))
	}
}

// A dead letter that the broker's own tools moved back dies again: what is known of its first death is replaced.
func testMovedBack(e *env) {
	entry := e.letter("back", nil)
	e.put(entry)
	moved := e.received(queue.DLQ(e.queue))
	if len(moved) != 1 {
		e.Fatalf("%d messages in the dead-letter queue", len(moved))
	}
	again := entry
	again.Message, again.Error, again.Attempts = moved[0], "another error", nil
	e.put(again)
	got := e.one()
	if diff := cmp.Diff(entry.Message, got.Message); diff != "" || got.Error != "another error" || got.Attempts != nil {
		e.Errorf("entry %+v; message (-want +got):\n%s", got, diff)
	}
}

func testDepth(e *env) {
	e.put(e.some(3)...)
	letters := e.open(brokerdlq.Config{Queues: []string{e.queue, "not-there"}})
	if e.broker.Capabilities(queue.DLQ(e.queue)).Depth&queue.DepthFieldReady == 0 {
		e.Log("this broker cannot count")
		return
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		depth, err := letters.Depth(e.Context())
		if err != nil {
			e.Fatal(err)
		}
		for _, d := range depth.Dead {
			if d.Queue == e.queue && d.Count == 3 && d.Cause == "" {
				return
			}
		}
		if time.Now().After(end) {
			e.Fatalf("depth %+v, want 3 in %s", depth, e.queue)
		}
	}
}
