package faultlab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	childReady  = "worker process is up"
	envDir      = "CAISSON_TEST_LAB_DIR"
	envBroker   = "CAISSON_TEST_LAB_BROKER"
	envWhere    = "CAISSON_TEST_LAB_WHERE"
	envQueue    = "CAISSON_TEST_LAB_QUEUE"
	envMutation = "CAISSON_TEST_LAB_MUTATION"
	envLease    = "CAISSON_TEST_LAB_LEASE"
	envSlots    = "CAISSON_TEST_LAB_CONCURRENCY"
)

// Main makes this process a worker, and does not return, if [KillRound] started it as one. Call it first in TestMain, with all brokers
// that tests of the package name.
func Main(openers map[string]Opener) {
	dir := os.Getenv(envDir)
	if dir == "" {
		return
	}
	open, ok := openers[os.Getenv(envBroker)]
	err := fmt.Errorf("no opener for broker %q", os.Getenv(envBroker))
	if ok {
		err = work(dir, open)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work is what a child does.
func work(dir string, open Opener) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println(childReady)
	stack, err := open(ctx, dir, os.Getenv(envWhere))
	if err != nil && ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	defer func() { _ = stack.Close() }()
	book, err := OpenBook(dir)
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }()
	lease, err := time.ParseDuration(os.Getenv(envLease))
	slots, slotsErr := strconv.Atoi(os.Getenv(envSlots))
	if err := errors.Join(err, slotsErr); err != nil {
		return err
	}
	w, err := crew{
		stack: stack, queue: os.Getenv(envQueue), book: book, lease: lease, concurrency: slots, mutation: os.Getenv(envMutation), log: os.Stderr,
	}.worker()
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// child is a worker process: this test binary, run again with its orders in the environment.
type child struct {
	cmd *exec.Cmd
	out *os.File
}

func startChild(t testing.TB, plan KillPlan, dir string) *child {
	t.Helper()
	out, err := os.CreateTemp(dir, "child-*.log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:noctx // ended by kill or stop, with its exit looked at
	cmd.Env = append(os.Environ(),
		envDir+"="+dir, envBroker+"="+plan.Broker, envWhere+"="+plan.Where, envQueue+"="+plan.Queue, envMutation+"="+plan.Mutation, envLease+"="+plan.lease().String(), envSlots+"="+strconv.Itoa(cmp.Or(plan.Concurrency, 20)))
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
		_ = out.Close()
	})
	return c
}

// awaitWork waits until the process is in the middle of a handler, but not for longer than until.
func (c *child) awaitWork(dir string, until time.Time) {
	for time.Now().Before(until) {
		book, err := os.ReadFile(bookName(dir, c.cmd.Process.Pid))
		if err == nil && bytes.Count(book, []byte("\n")) > 2*bytes.Count(book, []byte(`"end":`)) {
			return
		}
		time.Sleep(5 * time.Millisecond) // between looks at another process's book
	}
}

// kill ends the process with SIGKILL and says when it was gone.
func (c *child) kill(t testing.TB) Kill {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatalf("kill: %v\n%s", err, c.log())
	}
	_ = c.cmd.Wait()
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the worker process ended by itself: %s\n%s", c.cmd.ProcessState, c.log())
	}
	return Kill{PID: c.cmd.Process.Pid, At: time.Now()}
}

// stop ends the process gracefully, once it has come up, and wants a clean exit.
func (c *child) stop(t testing.TB) {
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
	if err := c.cmd.Wait(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("worker process: %v\n%s", err, c.log())
	}
}

func (c *child) log() string { return tail(c.out.Name()) }
