package brokerdlqtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
)

// Harness connects the suite to a broker.
type Harness struct {
	// Broker returns a broker, which t.Cleanup closes. Required.
	Broker func(t *testing.T) queue.Broker
	// Queue makes a queue with its dead-letter queue, under a name that nobody used before and that contains base, and sees to its
	// removal. Nil makes both by CreateQueue and leaves them.
	Queue func(t *testing.T, b queue.Broker, base string) string
	// Store returns an empty store for imports. Required.
	Store func(t *testing.T) dlq.Store
	// Idle is how long the broker may take to hand out a message that is there. Zero means 2 s.
	Idle time.Duration
	// Bubble runs each case in a testing/synctest bubble, where waiting takes no time: for brokers in memory. Without it cases run in
	// parallel, and mostly wait: go test -parallel 16 makes them quicker.
	Bubble bool
	// Jobs is how many dead letters the larger cases have. Zero means 60.
	Jobs int
}

// Run runs the suite, each case with queues of its own.
func Run(t *testing.T, h Harness) {
	if h.Idle == 0 {
		h.Idle = 2 * time.Second
	}
	if h.Jobs == 0 {
		h.Jobs = 60
	}
	if h.Queue == nil {
		h.Queue = newQueue
	}
	for _, group := range [][]testCase{putTests(), lookTests(), replayTests(), faultTests(), moveTests(), mirrorTests()} {
		for _, tc := range group {
			t.Run(tc.name, func(t *testing.T) {
				if h.Bubble {
					synctest.Test(t, func(t *testing.T) { h.run(t, tc) })
					return
				}
				t.Parallel()
				h.run(t, tc)
			})
		}
	}
}

func (h Harness) run(t *testing.T, tc testCase) {
	e := &env{T: t, h: h, broker: h.Broker(t)}
	e.queue = h.Queue(t, e.broker, "dead")
	e.letters = e.open(brokerdlq.Config{})
	tc.test(e)
}

type testCase struct {
	name string
	test func(*env)
}

func newQueue(t *testing.T, b queue.Broker, base string) string {
	t.Helper()
	name := base + "-" + strings.ToLower(rand.Text())
	for _, name := range []string{name, queue.DLQ(name)} {
		if err := b.CreateQueue(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// env is what a case works with. Its helpers fail the test.
type env struct {
	*testing.T
	h       Harness
	broker  queue.Broker
	queue   string
	letters *brokerdlq.Queues
}

// open opens the dead letters with cfg, whose broker is this test's own unless it names one.
func (e *env) open(cfg brokerdlq.Config) *brokerdlq.Queues {
	e.Helper()
	if cfg.Broker == nil {
		cfg.Broker = e.broker
	}
	cfg.Idle = cmp.Or(cfg.Idle, e.h.Idle)
	q, err := brokerdlq.New(cfg)
	if err != nil {
		e.Fatal(err)
	}
	return q
}

// all selects this test's dead letters.
func (e *env) all() dlq.Filter { return dlq.Filter{Queue: e.queue} }

// letter returns the dead letter of a job as a worker puts it.
func (e *env) letter(job string, change func(*queue.Envelope, *dlq.Entry)) dlq.Entry {
	e.Helper()
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	env := queue.Envelope{ID: job, Kind: "email.send", Key: "key of " + job, EnqueuedAt: at, AttemptBase: 1, Headers: map[string]string{"traceparent": "00-abc"}}
	entry := dlq.Entry{
		State: dlq.StateDead, Queue: e.queue, Destination: "smtp", Cause: dlq.CauseExhausted, Error: "status 500 after 12 ms: früh",
		AttemptCount: 2, FirstFailedAt: at.Add(time.Minute), LastFailedAt: at.Add(2 * time.Minute),
		Attempts: []dlq.FailedAttempt{
			{Number: 1, Started: at, Ended: at.Add(time.Minute), Error: "status 502"},
			{Number: 2, Started: at.Add(time.Minute), Ended: at.Add(2 * time.Minute), Error: "status 500"},
		},
		Message: queue.Message{Body: []byte(`{"job":"` + job + `"}`)},
	}
	if change != nil {
		change(&env, &entry)
	}
	m, err := queue.NewMessage(env, entry.Message.Body)
	if err != nil {
		e.Fatal(err)
	}
	for name, value := range entry.Message.Headers {
		m.Headers[name] = value
	}
	m.Headers["reply-to"] = "somewhere"
	entry.Job, entry.Run, entry.Kind, entry.Key, entry.EnqueuedAt, entry.Message = env.ID, env.Run, env.Kind, env.Key, env.EnqueuedAt, m
	return entry
}

// some returns n dead letters, of which every third is of kind "sms.send".
func (e *env) some(n int) []dlq.Entry {
	e.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = e.letter(fmt.Sprintf("job-%d", i), func(env *queue.Envelope, _ *dlq.Entry) {
			if i%3 == 0 {
				env.Kind = "sms.send"
			}
		})
	}
	return entries
}

// put moves entries to the dead letters. What is put is older than what the test does next.
func (e *env) put(entries ...dlq.Entry) {
	e.Helper()
	if err := errors.Join(e.letters.Put(e.Context(), entries)...); err != nil {
		e.Fatal(err)
	}
	for start := time.Now(); !time.Now().After(start); {
		time.Sleep(time.Microsecond) // clocks have a grain
	}
}

// publish puts messages into a queue as they are.
func (e *env) publish(name string, messages ...queue.Message) {
	e.Helper()
	pubs := make([]queue.Publication, len(messages))
	for i, m := range messages {
		pubs[i] = queue.Publication{Message: m, Group: fmt.Sprint("group-", i), DedupID: rand.Text()}
	}
	for _, r := range e.broker.Publish(e.Context(), name, pubs) {
		if r.Err != nil {
			e.Fatal(r.Err)
		}
	}
}

// sample returns all dead letters that match, by id. What a poll that was cut has stranded comes back when its lease ends.
func (e *env) sample(f dlq.Filter) map[string]dlq.Entry {
	e.Helper()
	var s []dlq.Entry
	scanned := brokerdlq.ScanReport{Incomplete: true}
	for end := time.Now().Add(2 * time.Minute); scanned.Incomplete; {
		var err error
		if s, scanned, err = e.letters.Sample(e.Context(), f, 10_000); err != nil {
			e.Fatal(err)
		}
		if scanned.Incomplete && time.Now().After(end) {
			e.Fatalf("sample of %d is not complete", scanned.Looked)
		}
	}
	byID := map[string]dlq.Entry{}
	for _, entry := range s {
		byID[entry.ID] = entry
	}
	return byID
}

// wantLeft waits until so many dead letters are there, and returns them: what was given back is on its way for a moment, in which no broker has to count it.
func (e *env) wantLeft(want int) map[string]dlq.Entry {
	e.Helper()
	var left map[string]dlq.Entry
	eventually.NoError(e, func() error {
		if left = e.sample(e.all()); len(left) != want {
			return fmt.Errorf("%d dead letters are left, want %d", len(left), want)
		}
		return nil
	})
	return left
}

// one returns the only dead letter.
func (e *env) one() dlq.Entry {
	e.Helper()
	for _, entry := range e.wantLeft(1) {
		return entry
	}
	panic("unreachable")
}

// replayed is what a replay reports.
type replayed struct {
	replay.Report
	brokerdlq.ScanReport
}

// replay replays what cfg selects of this test's queue.
func (e *env) replay(ctx context.Context, letters *brokerdlq.Queues, cfg replay.Config) (r replayed, err error) {
	if cfg.Filter.Queue == "" {
		cfg.Filter.Queue = e.queue
	}
	r.Report, r.ScanReport, err = letters.Replay(ctx, cfg)
	return r, err
}

// received takes all messages out of a queue. A silence is believed when the broker counts none either.
func (e *env) received(name string) []queue.Message {
	e.Helper()
	sub, err := e.broker.Subscribe(e.Context(), name, queue.SubscribeConfig{Slots: 100})
	if err != nil {
		e.Fatal(err)
	}
	defer func() {
		if err := sub.Close(); err != nil {
			e.Error(err)
		}
	}()
	end := time.Now().Add(time.Minute)
	for messages := []queue.Message(nil); ; {
		ctx, cancel := context.WithTimeout(e.Context(), e.h.Idle)
		leases, err := sub.Receive(ctx, 100)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			if depth, err := e.broker.Depth(e.Context(), name); err == nil && depth.Ready.N > 0 && time.Now().Before(end) {
				continue
			}
			return messages
		}
		if err != nil {
			e.Fatal(err)
		}
		for _, l := range leases {
			if err := l.Ack(e.Context()); err != nil {
				e.Fatal(err)
			}
			messages = append(messages, l.Message)
		}
	}
}

// runs counts the messages of a queue by job and run, and takes them out.
func (e *env) runs(name string) map[string]int {
	e.Helper()
	counts := map[string]int{}
	for _, m := range e.received(name) {
		env, err := m.Envelope()
		if err != nil {
			e.Fatal(err)
		}
		counts[dlq.EntryID(env.ID, env.Run)]++
	}
	return counts
}

// wantRuns fails unless exactly the given runs are in a queue, each once.
func (e *env) wantRuns(name string, want ...string) {
	e.Helper()
	got := e.runs(name)
	for _, id := range want {
		if got[id] != 1 {
			e.Errorf("%s is %d times in %s, want once", id, got[id], name)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		e.Errorf("%s holds also %v", name, got)
	}
}

// next returns the ids of the next runs of entries.
func next(entries []dlq.Entry) []string {
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = dlq.EntryID(entry.Job, entry.Run+1)
	}
	return ids
}

// ofKind returns the entries of a kind.
func ofKind(entries []dlq.Entry, kind string) (found []dlq.Entry) {
	for _, entry := range entries {
		if entry.Kind == kind {
			found = append(found, entry)
		}
	}
	return found
}
