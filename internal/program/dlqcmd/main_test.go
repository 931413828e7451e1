package dlqcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/runcmd"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// envProgram makes the test binary the program itself, with real signals.
const envProgram = "DLQ_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(envProgram) {
	case "":
	case "broker":
		cli.Main(func(ctx context.Context) cli.Code { return onBroker(cli.System()).run(ctx, os.Args[1:]) })
	default:
		cli.Main(func(ctx context.Context) cli.Code { return Run(ctx, os.Args[1:], cli.System()) })
	}
	goleak.VerifyTestMain(m)
}

// runWorker runs one command line of a program with kinds, which has none of the commands of this package.
func runWorker(ctx context.Context, args []string, log io.Writer, setup func(*worker.Registry) error) cli.Code {
	p := &cli.Program{Name: "worker", IO: cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: log}}
	root := cli.Group(&cobra.Command{Use: p.Name}, runcmd.Commands(p, setup)...) //nolint:contextcheck // commands take the context that cobra hands them
	p.Settings.Register(root)
	return cli.Run(ctx, root, args, p.IO)
}

// result is what one command line printed.
type result struct {
	code     cli.Code
	out, err string
}

func call(t *testing.T, args ...string) result {
	t.Helper()
	return callWith(t, t.Context(), args...)
}

func callWith(t *testing.T, ctx context.Context, args ...string) result { //nolint:revive // t goes first in tests
	t.Helper()
	var out, errs strings.Builder
	code := Run(ctx, args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	return result{code, out.String(), errs.String()}
}

// ok fails the test unless the command exited with 0, and returns what it printed.
func ok(t *testing.T, r result) string {
	t.Helper()
	if r.code != cli.OK {
		t.Fatalf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.out, r.err)
	}
	return r.out
}

// open opens the stack at path as a worker would.
func open(t *testing.T, path string) *backends.Set {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{Flags: map[string]string{"embedded.path": path}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := backends.Open(t.Context(), cfg, backends.Create, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// binary holds every byte.
var binary = func() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// letter returns a dead letter as a worker stores it.
func letter(t *testing.T, job, queueName, kind string, payload []byte, change func(*dlq.Entry)) dlq.Entry {
	t.Helper()
	at := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	m, err := queue.NewMessage(queue.Envelope{ID: job, Kind: kind, Destination: "shop", EnqueuedAt: at, Headers: map[string]string{"trace": "t"}}, payload)
	if err != nil {
		t.Fatal(err)
	}
	e := dlq.Entry{
		Job: job, State: dlq.StateDead, Queue: queueName, Kind: kind, Destination: "shop", Cause: dlq.CauseExhausted, Error: "status 500 after 12 ms",
		Attempts: []dlq.FailedAttempt{{Number: 1, Started: at, Ended: at.Add(time.Second), Error: "status 500"}}, AttemptCount: 2,
		EnqueuedAt: at, FirstFailedAt: at, LastFailedAt: at.Add(time.Minute), Message: m,
	}
	if change != nil {
		change(&e)
	}
	return e
}

// seed puts entries in the store at path, one call each so that their order is that of the list.
func seed(t *testing.T, s *backends.Set, entries ...dlq.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := s.Broker.CreateQueue(t.Context(), e.Queue); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Letters.Put(t.Context(), []dlq.Entry{e})...); err != nil {
			t.Fatal(err)
		}
	}
}

// three seeds a store with three dead letters and returns its path.
func three(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.db")
	seed(t, open(t, path),
		letter(t, "a", "mail", "email.send", []byte(`{"to":"<ann>"}`), nil),
		letter(t, "b", "mail", "email.send", binary, func(e *dlq.Entry) { e.Error = "status 503 after 7 ms\x1b[2J\nwiped" }),
		letter(t, "c", "hooks", "webhook.deliver", nil, func(e *dlq.Entry) {
			e.Cause, e.Destination, e.Key = dlq.CauseRejected, "", "key-c"
			e.Error = "cancelled"
		}),
	)
	return path
}

// drain receives everything that is visible in a queue and returns the messages. The queue is in order: a message of its own marks the end.
func drain(t *testing.T, s *backends.Set, name string) []queue.Message {
	t.Helper()
	const end = "end of the queue"
	if r := s.Broker.Publish(t.Context(), name, []queue.Publication{{Message: queue.Message{Body: []byte(end)}}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	sub, err := s.Broker.Subscribe(t.Context(), name, queue.SubscribeConfig{Slots: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}()
	for messages := []queue.Message(nil); ; {
		leases, err := sub.Receive(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if err := l.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
			if string(l.Body) == end {
				return messages
			}
			messages = append(messages, l.Message)
		}
	}
}

func ids(n int, prefix string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	return out
}
