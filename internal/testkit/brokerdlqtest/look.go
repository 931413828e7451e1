package brokerdlqtest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
)

func lookTests() []testCase {
	return []testCase{
		{"Look/changes nothing", testLook},
		{"Look/filters", testFilters},
		{"Look/what the broker moved itself", testBrokerMoved},
		{"Look/metadata of another version", testOtherVersion},
		{"Look/stops where too many are kept", testLookBound},
		{"Look/missing queue is empty", testLookNowhere},
		{"Look/a slow queue is not empty", testLookSlow},
	}
}

func testLook(e *env) {
	entries := e.some(7)
	e.put(entries...)
	first := e.wantLeft(7)
	if diff := cmp.Diff(first, e.wantLeft(7)); diff != "" {
		e.Errorf("looking changed them (-first +second):\n%s", diff)
	}
	eventually.NoError(e, func() error { // what the look before gave back may be on its way; then the sample says so
		s, scanned, err := e.letters.Sample(e.Context(), e.all(), 2)
		if err != nil || !scanned.Incomplete {
			e.Fatalf("sample of 2: %d entries, complete %v, %v", len(s), !scanned.Incomplete, err)
		}
		if len(s) != 2 {
			return fmt.Errorf("sample of 2: %d entries", len(s))
		}
		return nil
	})
	report, err := e.replay(e.Context(), e.letters, replay.Config{DryRun: true, Filter: dlq.Filter{Kind: "sms.send"}})
	if err != nil || report.Matched != 3 || report.Replayed != 3 || report.PassedOver != 4 || report.Incomplete {
		e.Errorf("dry run: %+v, %v", report, err)
	}
	e.wantLeft(7)
	if got := e.received(e.queue); len(got) != 0 {
		e.Errorf("a dry run published %d messages", len(got))
	}
}

func testFilters(e *env) {
	entries := e.some(4)
	entries[1].Cause, entries[1].Error = dlq.CauseTimeout, "no answer"
	entries[2].Destination = "elsewhere"
	e.put(entries...)
	for name, tt := range map[string]struct {
		f    dlq.Filter
		want string
	}{
		"kind":        {dlq.Filter{Kind: "sms.send"}, "job-0.0 job-3.0"},
		"cause":       {dlq.Filter{Cause: dlq.CauseTimeout}, "job-1.0"},
		"text":        {dlq.Filter{Text: "NO ANSWER"}, "job-1.0"},
		"fingerprint": {dlq.Filter{Fingerprint: dlq.FingerprintError("no answer")}, "job-1.0"},
		"destination": {dlq.Filter{Destination: "elsewhere"}, "job-2.0"},
		"ids":         {dlq.Filter{IDs: []string{"job-3.0", "job-2.0"}}, "job-2.0 job-3.0"},
		"since":       {dlq.Filter{Since: entries[0].EnqueuedAt.AddDate(1, 0, 0)}, ""},
		"until":       {dlq.Filter{Until: entries[0].EnqueuedAt}, ""},
		"state":       {dlq.Filter{States: []dlq.State{dlq.StateHeld}}, ""},
	} {
		tt.f.Queue = e.queue
		eventually.NoError(e, func() error { // what the look before gave back may be on its way
			found := e.sample(tt.f)
			var ids []string
			for _, entry := range entries {
				if id := dlq.EntryID(entry.Job, 0); found[id].ID != "" {
					ids = append(ids, id)
				}
			}
			if got := strings.Join(ids, " "); got != tt.want || len(found) != len(ids) {
				return fmt.Errorf("%s selects %q of %d, want %q", name, got, len(found), tt.want)
			}
			return nil
		})
	}
}

// moved puts messages where the broker itself puts them: as they were, without a word about why.
func (e *env) moved(messages ...queue.Message) {
	e.Helper()
	e.publish(queue.DLQ(e.queue), messages...)
}

func testBrokerMoved(e *env) {
	job := e.letter("crashed", nil)
	foreign := queue.Message{Body: []byte("hello"), Headers: map[string]string{"x": "y"}}
	broken := queue.Message{Body: []byte("broken"), Headers: map[string]string{queue.HeaderEnvelope: `{"v":1,`}}
	e.moved(job.Message, foreign, broken)
	found := e.sample(e.all())
	got := found["crashed.0"]
	want := dlq.Entry{
		ID: "crashed.0", Job: "crashed", State: dlq.StateDead, Queue: e.queue, Kind: job.Kind, Key: job.Key, Cause: dlq.CauseBroker,
		EnqueuedAt: job.EnqueuedAt, Message: job.Message,
	}
	ignored := cmpopts.IgnoreFields(dlq.Entry{}, "Error", "Fingerprint", "StoredAt", "ChangedAt", "Group")
	if diff := cmp.Diff(want, got, ignored); diff != "" || !strings.Contains(got.Error, "broker itself") {
		e.Errorf("error %q; entry (-want +got):\n%s", got.Error, diff)
	}
	bodies := map[string]bool{}
	for _, entry := range found {
		bodies[string(entry.Message.Body)] = true
		if entry.Cause != dlq.CauseBroker || entry.Queue != e.queue {
			e.Errorf("entry %+v", entry)
		}
	}
	if len(found) != 3 || !bodies["hello"] || !bodies["broken"] {
		e.Errorf("found %d: %v", len(found), bodies)
	}

	report, err := e.replay(e.Context(), e.letters, replay.Config{})
	if err != nil || report.Replayed != 2 || report.Refused != 1 || len(report.Problems) != 1 ||
		!strings.Contains(report.Problems[0].Error, "envelope cannot be read") {
		e.Fatalf("report %+v, %v", report, err)
	}
	for _, m := range e.received(e.queue) {
		if env, err := m.Envelope(); err == nil {
			if env.ID != "crashed" || env.Run != 1 || env.AttemptBase != 0 {
				e.Errorf("replayed %+v", env)
			}
		} else if diff := cmp.Diff(foreign, m); diff != "" {
			e.Errorf("foreign message changed:\n%s", diff)
		}
	}
	if got := e.one(); string(got.Message.Body) != "broken" {
		e.Errorf("left: %+v", got)
	}
}

func testOtherVersion(e *env) {
	job := e.letter("newer", nil)
	job.Message.Headers[brokerdlq.HeaderDead] = `{"v":2,"cause":{}}`
	e.moved(job.Message)
	got := e.one()
	if got.ID != "newer.0" || got.Cause != dlq.CauseBroker || !strings.Contains(got.Error, "metadata unknown") || got.Message.Headers[brokerdlq.HeaderDead] != "" {
		e.Errorf("entry %+v", got)
	}
}

func testLookBound(e *env) {
	e.put(e.some(12)...)
	letters := e.open(brokerdlq.Config{MaxKept: 5})
	s, scanned, err := letters.Sample(e.Context(), e.all(), 100)
	if err != nil || len(s) != 5 || !scanned.Incomplete {
		e.Errorf("%d entries, complete %v, %v; want 5 of 12", len(s), !scanned.Incomplete, err)
	}
	report, err := e.replay(e.Context(), letters, replay.Config{DryRun: true})
	if err != nil || report.Replayed != 5 || !report.Incomplete {
		e.Errorf("dry run %+v, %v", report, err)
	}
	e.wantLeft(12)
}

func testLookNowhere(e *env) {
	s, scanned, err := e.letters.Sample(e.Context(), dlq.Filter{Queue: "not-there-" + e.queue}, 10)
	if err != nil || len(s) != 0 || scanned.Incomplete {
		e.Errorf("sample %+v, %v", s, err)
	}
}

// silent is a broker that hands out nothing in its first receives.
type silent struct {
	queue.Broker
	receives atomic.Int32
}

func (s *silent) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := s.Broker.Subscribe(ctx, name, cfg)
	return silentSubscription{sub, &s.receives}, err
}

type silentSubscription struct {
	queue.Subscription
	receives *atomic.Int32
}

func (s silentSubscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	if s.receives.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Subscription.Receive(ctx, most)
}

func testLookSlow(e *env) {
	e.put(e.some(3)...)
	broker := &silent{Broker: e.broker}
	broker.receives.Store(1)
	letters := e.open(brokerdlq.Config{Broker: broker})
	want := 3
	if e.broker.Capabilities(queue.DLQ(e.queue)).Depth&queue.DepthFieldReady == 0 {
		want = 0 // nobody can tell
	}
	s, scanned, err := letters.Sample(e.Context(), e.all(), 10)
	if err != nil || len(s) != want || scanned.Incomplete {
		e.Errorf("%d entries, complete %v, %v: want all %d", len(s), !scanned.Incomplete, err, want)
	}
}
