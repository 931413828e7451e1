package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// rig is one embedded file with everything on it.
type rig struct {
	ctx    context.Context
	broker *embedded.Broker
	claims idempotency.Store
	dead   dlq.Store
}

func openRig(t testing.TB, path string) *rig {
	t.Helper()
	r, err := newRig(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.broker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func newRig(ctx context.Context, path string) (*rig, error) {
	broker, err := embedded.Open(ctx, embedded.Config{Path: path})
	if err != nil {
		return nil, err
	}
	claims, err := claimsqlite.New(ctx, broker.File())
	if err != nil {
		return nil, err
	}
	dead, err := dlqsqlite.New(ctx, broker.File())
	if err != nil {
		return nil, err
	}
	if err := broker.CreateQueue(ctx, worker.DefaultQueue); err != nil {
		return nil, err
	}
	return &rig{ctx: ctx, broker: broker, claims: claims, dead: dead}, nil
}

func (r *rig) client(t testing.TB) *worker.Client {
	t.Helper()
	client, err := worker.NewClient(worker.ClientConfig{Broker: r.broker})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waitEmpty waits until the queue holds no message at all.
func (r *rig) waitEmpty(t testing.TB, name string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		d, err := r.broker.Depth(ctx, name)
		if err != nil {
			t.Fatalf("depth of %q: %v", name, err)
		}
		if d.Ready.N+d.Delayed.N+d.InFlight.N == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("queue %q still holds messages after %s: %+v", name, limit, d)
		}
	}
}

// child is a worker process: this test binary, run again with its orders in the environment.
type child struct {
	cmd *exec.Cmd
	out *os.File
}

const (
	childReady       = "worker process is up"
	envChildDir      = "CAISSON_TEST_KILL_DIR"
	envChildMutation = "CAISSON_TEST_KILL_MUTATION"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envChildDir); dir != "" {
		if err := killWorker(dir, os.Getenv(envChildMutation)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func startChild(t *testing.T, dir, mutation string) *child {
	t.Helper()
	out, err := os.CreateTemp(dir, "child-*.log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:noctx // ended by kill or stop, with its exit looked at
	cmd.Env = append(os.Environ(), envChildDir+"="+dir, envChildMutation+"="+mutation)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, out: out}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return c
}

// kill ends the process with SIGKILL and says when it was gone.
func (c *child) kill(t *testing.T) kill {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatalf("kill: %v\n%s", err, c.log())
	}
	_ = c.cmd.Wait()
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the worker process ended by itself: %s\n%s", c.cmd.ProcessState, c.log())
	}
	return kill{pid: c.cmd.Process.Pid, at: time.Now()}
}

// stop ends the process gracefully, once it has come up, and wants a clean exit.
func (c *child) stop(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(c.log(), childReady); {
		if time.Now().After(deadline) {
			t.Fatalf("worker process did not come up:\n%s", c.log())
		}
		time.Sleep(10 * time.Millisecond) // between looks at another process's output
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("worker process: %v\n%s", err, c.log())
	}
}

func (c *child) log() string {
	text, err := os.ReadFile(c.out.Name())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// killWorker is what a child does: work the queue and write each run to a ledger file of its own, one line when it starts and one when it ends.
func killWorker(dir, mutation string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println(childReady)
	r, err := newRig(context.Background(), filepath.Join(dir, "caisson.db"))
	if err != nil {
		return err
	}
	defer func() { _ = r.broker.Close() }()
	ledger, err := os.OpenFile(filepath.Join(dir, "ledger-"+strconv.Itoa(os.Getpid())+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = ledger.Close() }()

	registry := worker.NewRegistry()
	worker.Handle(registry, killKindOf(), func(ctx context.Context, job killJob) error { return killHandle(ctx, ledger, job) })
	cfg := worker.Config{
		Broker: r.broker, Registry: registry, Store: r.claims, DeadLetters: r.dead, Concurrency: 20, Lease: killLease,
		Stop: worker.StopConfig{Grace: 10 * time.Second},
	}
	switch mutation {
	case "ack-first":
		cfg.Store = lateCompletions{r.claims}
	case "apart":
		cfg.Store = struct{ idempotency.Store }{r.claims} // does not tell which database it lives in
	}
	w, err := worker.New(cfg)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func killKindOf() worker.Kind[killJob] {
	backoff, err := schedule.Constant(200*time.Millisecond, schedule.Full)
	if err != nil {
		panic(err)
	}
	return worker.Kind[killJob]{Name: killKind, Config: worker.KindConfig{MaxAttempts: killAttempts, Backoff: backoff, Timeout: 20 * time.Second}}
}

// lateCompletions breaks the settle order: it says that a completion is stored and stores it a while later, when the ack is long out.
type lateCompletions struct{ idempotency.Store }

func (s lateCompletions) Complete(_ context.Context, comps []idempotency.Completion) []error {
	//nolint:contextcheck // the delivery and its context are over by then
	time.AfterFunc(300*time.Millisecond, func() { s.Store.Complete(context.Background(), comps) })
	return make([]error, len(comps))
}

func killHandle(ctx context.Context, ledger *os.File, job killJob) error {
	j := worker.JobFrom(ctx)
	r := run{Key: j.Key, Run: j.Run, Attempt: j.Attempt, Token: j.Token, PID: os.Getpid(), Start: time.Now()}
	if err := writeRun(ledger, r); err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(20+job.N%100) * time.Millisecond):
	case <-ctx.Done():
	}
	r.End, r.OK = time.Now(), ctx.Err() == nil && j.Attempt > job.Fails
	if err := writeRun(ledger, r); err != nil {
		return err
	}
	if !r.OK {
		return fmt.Errorf("attempt %d of job %d fails as told", j.Attempt, job.N)
	}
	return nil
}

func writeRun(ledger *os.File, r run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = ledger.Write(append(line, '\n')) // one write a line: a kill cannot cut it
	return err
}
