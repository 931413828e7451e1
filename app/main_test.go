package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// Variables of the test binary when it runs as a program of its own, with real signals.
const (
	// envProgram makes it one.
	envProgram = "APP_TEST_PROGRAM"
	// envEffects names the file to which handlers append what they do.
	envEffects = "APP_TEST_EFFECTS"
	// envKeyed registers the kind "pay", which needs a store.
	envKeyed = "APP_TEST_KEYED"
	// envObey makes the kind "hang" succeed at once.
	envObey = "APP_TEST_OBEY"
)

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		app.Main(programKinds)
	}
	// The SQS server of the tests takes any.
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "test"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// programKinds are the kinds of the test program: quick ends at once, hang ignores its context, pay is keyed and never succeeds unless
// envObey is set.
func programKinds(r *worker.Registry) error {
	effects, err := os.OpenFile(os.Getenv(envEffects), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	note := func(what string, job *worker.Job) error {
		_, err := fmt.Fprintf(effects, "%s %s %d\n", what, job.ID, job.Attempt)
		return err
	}
	worker.Handle(r, worker.Kind[[]byte]{Name: "quick"}, func(ctx context.Context, _ []byte) error {
		return note("done", worker.JobFrom(ctx))
	})
	worker.Handle(r, worker.Kind[[]byte]{Name: "hang"}, func(ctx context.Context, _ []byte) error {
		if os.Getenv(envObey) != "" {
			return note("done", worker.JobFrom(ctx))
		}
		if err := note("begun", worker.JobFrom(ctx)); err != nil {
			return err
		}
		select {} // field case B2: deaf to its context
	})
	if os.Getenv(envKeyed) != "" {
		pay := worker.Kind[[]byte]{Name: "pay", Config: worker.KindConfig{Keyed: new(true)}}
		worker.Handle(r, pay, func(ctx context.Context, _ []byte) error {
			if os.Getenv(envObey) == "" {
				return worker.Cancel(errors.New("card refused"))
			}
			return note("paid", worker.JobFrom(ctx))
		})
	}
	return nil
}

// result is what one command line printed.
type result struct {
	code     int
	out, err string
}

// call runs one command line in this process, with the variables env only.
func call(t *testing.T, stdin string, env []string, args ...string) result {
	t.Helper()
	return callWith(t, nil, stdin, env, args...)
}

func callWith(t *testing.T, setup func(*worker.Registry) error, stdin string, env []string, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	code := app.Run(t.Context(), append([]string{"worker"}, args...), app.IO{In: strings.NewReader(stdin), Out: &out, Err: &errs, Env: env}, setup)
	return result{code, out.String(), errs.String()}
}

// ok fails the test unless the command exited with 0, and returns what it printed.
func ok(t *testing.T, r result) string {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.out, r.err)
	}
	return r.out
}

// depth returns what `queues --json` tells of one queue: ready, delayed, in flight.
func depth(t *testing.T, db, name string) [3]int {
	t.Helper()
	var list struct {
		Queues []struct {
			Name     string
			Ready    int
			Delayed  int
			InFlight int `json:"in_flight"`
		}
	}
	if err := json.Unmarshal([]byte(ok(t, call(t, "", nil, "queues", "--db", db, "--json"))), &list); err != nil {
		t.Fatal(err)
	}
	for _, q := range list.Queues {
		if q.Name == name {
			return [3]int{q.Ready, q.Delayed, q.InFlight}
		}
	}
	t.Fatalf("no queue %q in %v", name, list)
	return [3]int{}
}

// buffer is a strings.Builder that a running program may write to while a test reads.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a `run` command in this process.
type running struct {
	stop context.CancelFunc
	log  *buffer
	code chan int
}

// start runs `run` with kinds until it is stopped.
func start(t *testing.T, setup func(*worker.Registry) error, args ...string) *running {
	t.Helper()
	return startCommand(t, nil, setup, "run", args...)
}

// startWith is start with variables.
func startWith(t *testing.T, env []string, setup func(*worker.Registry) error, args ...string) *running {
	t.Helper()
	return startCommand(t, env, setup, "run", args...)
}

// startCommand is startWith for any command that ends with a signal.
func startCommand(t *testing.T, env []string, setup func(*worker.Registry) error, command string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{stop: cancel, log: &buffer{}, code: make(chan int, 1)}
	args = append([]string{"worker", command, "--set", "log.format=json"}, args...)
	go func() {
		r.code <- app.Run(ctx, args, app.IO{In: strings.NewReader(""), Out: io.Discard, Err: r.log, Env: env}, setup)
	}()
	t.Cleanup(func() {
		cancel()
		if r.code != nil {
			<-r.code
		}
	})
	return r
}

// end stops the program and returns its exit code.
func (r *running) end() int {
	r.stop()
	code := <-r.code
	r.code = nil
	return code
}
