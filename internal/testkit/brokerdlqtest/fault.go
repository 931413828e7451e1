package brokerdlqtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
)

func faultTests() []testCase {
	return []testCase{
		{"Fault/target missing", testTargetMissing},
		{"Fault/every 7th publish throttled", testThrottled},
		{"Fault/interrupted", testInterrupted},
		{"Fault/metadata that is never taken", testNoMetadata},
		{"Fault/one header more is refused", testPacked},
		{"Fault/broker down", testDown},
	}
}

// faulty is a broker whose publishes fail as told.
type faulty struct {
	queue.Broker
	// fail returns the error for a publication, of which n-1 were before it.
	fail func(n int, p queue.Publication) error

	mu sync.Mutex
	n  int
}

func (f *faulty) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	results := make([]queue.PublishResult, len(pubs))
	var pass []queue.Publication
	var index []int
	for i, p := range pubs {
		f.n++
		if results[i].Err = f.fail(f.n, p); results[i].Err == nil {
			pass, index = append(pass, p), append(index, i)
		}
	}
	for i, r := range f.Broker.Publish(ctx, name, pass) {
		results[index[i]] = r
	}
	return results
}

// Field case G4 (c).
func testTargetMissing(e *env) {
	entries := e.some(e.h.Jobs)
	e.put(entries...)
	report, err := e.replay(e.Context(), e.letters, replay.Config{Queue: "not-there-" + e.queue, ChunkSize: 10})
	if !errors.Is(err, queue.ErrQueueNotFound) || report.Replayed != 0 || report.Failed != len(entries) {
		e.Errorf("report %+v, %v", report, err)
	}
	e.wantLeft(len(entries))
}

// Field case G4 (d).
func testThrottled(e *env) {
	entries := e.some(e.h.Jobs)
	e.put(entries...)
	throttled := e.open(brokerdlq.Config{Broker: &faulty{Broker: e.broker, fail: func(n int, _ queue.Publication) error {
		if n%7 == 0 {
			return fmt.Errorf("throttled: %w", queue.ErrUnavailable)
		}
		return nil
	}}})
	report, err := e.replay(e.Context(), throttled, replay.Config{ChunkSize: 20})
	failed := len(entries) / 7
	if !errors.Is(err, queue.ErrUnavailable) || report.Failed != failed || report.Replayed != len(entries)-failed {
		e.Errorf("report %+v, %v", report, err)
	}
	e.replayAll(failed)
	e.wantRuns(e.queue, next(entries)...)
}

// replayAll replays until so many were. What a replay gave back may still be on its way when the next one looks.
func (e *env) replayAll(want int) {
	e.Helper()
	replayed := 0
	eventually.NoError(e, func() error {
		report, err := e.replay(e.Context(), e.letters, replay.Config{})
		if replayed += report.Replayed; err == nil && replayed != want {
			err = fmt.Errorf("%d were replayed, want %d", replayed, want)
		}
		return err
	})
}

// Field case G4 (b).
func testInterrupted(e *env) {
	entries := e.some(e.h.Jobs)
	e.put(entries...)
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	report, err := e.replay(ctx, e.letters, replay.Config{ChunkSize: 10, Progress: func(replay.Report) { cancel() }})
	if !errors.Is(err, context.Canceled) || report.Replayed != 10 || !report.Incomplete {
		e.Errorf("report %+v, %v", report, err)
	}
	e.wantLeft(len(entries) - 10)
	e.replayAll(len(entries) - 10)
	e.wantRuns(e.queue, next(entries)...)
}

// Field case G1: the broker refuses whatever we add.
func testNoMetadata(e *env) {
	var sizes []int
	refusing := e.open(brokerdlq.Config{Broker: &faulty{Broker: e.broker, fail: func(_ int, p queue.Publication) error {
		if dead, ok := p.Headers[brokerdlq.HeaderDead]; ok {
			sizes = append(sizes, len(dead))
			return &queue.TooLargeError{Size: 2, Limit: 1}
		}
		return nil
	}}})
	entry := e.letter("bare", func(_ *queue.Envelope, entry *dlq.Entry) { entry.Error = strings.Repeat("x", 5000) })
	if err := errors.Join(refusing.Put(e.Context(), []dlq.Entry{entry})...); err != nil {
		e.Fatal(err)
	}
	for i := range sizes {
		if i > 0 && sizes[i] >= sizes[i-1] {
			e.Errorf("attempts of %v bytes: each must be smaller than the last", sizes)
		}
	}
	got := e.one()
	if diff := cmp.Diff(entry.Message, got.Message); diff != "" || len(sizes) != 4 || got.Cause != dlq.CauseBroker || got.ID != "bare.0" {
		e.Errorf("attempts of %v bytes; entry %+v; message (-want +got):\n%s", sizes, got, diff)
	}
}

// Field case G1 (b), where the broker counts headers: the message's own move into ours, and a replay restores them.
func testPacked(e *env) {
	entry := e.letter("packed", func(_ *queue.Envelope, entry *dlq.Entry) { entry.Message.Headers = map[string]string{"note": "früh"} })
	refusing := e.open(brokerdlq.Config{Broker: &faulty{Broker: e.broker, fail: func(_ int, p queue.Publication) error {
		if len(p.Headers) > 3 {
			return errors.New("too many attributes")
		}
		return nil
	}}})
	if err := errors.Join(refusing.Put(e.Context(), []dlq.Entry{entry})...); err != nil {
		e.Fatal(err)
	}
	got := e.one()
	if diff := cmp.Diff(entry.Message, got.Message); diff != "" || got.Error != entry.Error || len(got.Attempts) != 2 {
		e.Errorf("entry %+v; message (-want +got):\n%s", got, diff)
	}
	if _, err := e.replay(e.Context(), e.letters, replay.Config{}); err != nil {
		e.Fatal(err)
	}
	replayed := e.received(e.queue)
	if len(replayed) != 1 {
		e.Fatalf("%d messages", len(replayed))
	}
	want, had := maps.Clone(entry.Message.Headers), replayed[0].Headers
	delete(want, queue.HeaderEnvelope)
	delete(had, queue.HeaderEnvelope)
	if diff := cmp.Diff(want, had); diff != "" {
		e.Errorf("replayed headers (-want +got):\n%s", diff)
	}
}

func testDown(e *env) {
	down := e.open(brokerdlq.Config{Broker: &faulty{Broker: e.broker, fail: func(int, queue.Publication) error {
		return fmt.Errorf("no connection: %w", queue.ErrUnavailable)
	}}})
	errs := down.Put(e.Context(), []dlq.Entry{e.letter("down", nil)})
	if !errors.Is(errs[0], queue.ErrUnavailable) || !errors.Is(errs[0], dlq.ErrUnavailable) {
		e.Errorf("put answers %v, want both kinds of unavailable", errs[0])
	}
	e.put(e.some(4)...)
	report, err := e.replay(e.Context(), down, replay.Config{})
	if !errors.Is(err, queue.ErrUnavailable) || report.Replayed != 0 {
		e.Errorf("report %+v, %v", report, err)
	}
	e.wantLeft(4)
}
