package faultlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// Child is this test binary, run again as a process of its own.
type Child struct {
	cmd *exec.Cmd
	out *os.File
}

// childReady is what a child prints once signals end it gracefully.
const childReady = "child process is up"

// ChildContext is what a child does first: the context ends when the child is to stop.
func ChildContext() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), syscall.SIGTERM)
	fmt.Println(childReady)
	return ctx, stop
}

// StartChild starts a child with env beside the variables of this process, by which TestMain knows it. What it prints is in a file in dir. It is
// killed at the end of the test, if it is still there.
func StartChild(t testing.TB, dir string, env ...string) *Child {
	t.Helper()
	out, err := os.CreateTemp(dir, "child-*.log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:noctx // ended by Kill or Stop, with its exit looked at
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = out.Close()
	})
	return &Child{cmd: cmd, out: out}
}

// PID is the process's.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Kill ends the process with SIGKILL and says when it was gone.
func (c *Child) Kill(t testing.TB) Kill {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatalf("kill: %v\n%s", err, c.Log())
	}
	_ = c.cmd.Wait()
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child process ended by itself: %s\n%s", c.cmd.ProcessState, c.Log())
	}
	return Kill{PID: c.PID(), At: time.Now()}
}

// Stop ends the process gracefully, once it has come up, and wants a clean exit.
func (c *Child) Stop(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !c.up(); {
		if time.Now().After(deadline) {
			t.Fatalf("child process did not come up:\n%s", c.Log())
		}
		time.Sleep(10 * time.Millisecond) // between looks at another process's output
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("child process: %v\n%s", err, c.Log())
	}
}

// up reports whether the process has said that it is.
func (c *Child) up() bool {
	text, err := os.ReadFile(c.out.Name())
	return err == nil && bytes.Contains(text, []byte(childReady))
}

// Log is the end of what the process printed.
func (c *Child) Log() string { return tail(c.out.Name()) }
