//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemon is a server's process. It leads a process group of its own and ends with the process of the test, however that ends.
type daemon struct {
	dir  string // what belongs to it; its output is in the file "output"
	user *account
	cmd  *exec.Cmd // nil while down
	dog  *watchdog
}

func (d *daemon) output() string { return filepath.Join(d.dir, "output") }

// begin starts a command that knows its arguments and environment.
func (d *daemon) begin(ctx context.Context, cmd *exec.Cmd) error {
	out, err := os.OpenFile(d.output(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, out, out
	d.user.runs(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmd = cmd
	if d.dog, err = watch(cmd.Process.Pid, d.dir); err != nil {
		return errors.Join(err, d.kill(ctx))
	}
	return nil
}

// end asks the process to end with sig, and returns when it is gone.
func (d *daemon) end(ctx context.Context, sig syscall.Signal) error {
	if err := d.cmd.Process.Signal(sig); err != nil {
		return err
	}
	return d.wait(ctx)
}

// kill ends the process, its group and its children, and returns when all are gone. PostgreSQL's children have left the group. The process
// is halted first, so that it starts no child meanwhile.
func (d *daemon) kill(ctx context.Context) error {
	pid := d.cmd.Process.Pid
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	children := childrenOf(pid)
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended by itself
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	for _, child := range children {
		if err := awaitEnd(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when the process is gone. If it is not by the end of ctx, it is killed.
func (d *daemon) wait(ctx context.Context) error {
	group := d.cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.cmd.Wait() // its exit status says which signal ended it
	}()
	var late error
	select {
	case <-ended:
	case <-ctx.Done():
		late = fmt.Errorf("the server did not end in time: %w", ctx.Err())
		_ = syscall.Kill(-group, syscall.SIGKILL)
		<-ended
	}
	d.cmd = nil
	d.dog.dismiss()
	d.dog = nil
	return late
}

// log returns what the process printed.
func (d *daemon) log(context.Context) string {
	text, err := os.ReadFile(d.output())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// alive looks for a process that has ended by itself; it is our child, so it is still there as a zombie.
func (d *daemon) alive(context.Context) error {
	if _, state := statusOf(d.cmd.Process.Pid); state == "Z" {
		return fmt.Errorf("%s has ended", filepath.Base(d.cmd.Path))
	}
	return nil // on a system without /proc the caller's own time limit has to do
}

// awaitEnd returns when pid is gone, or is a zombie that its new parent has not looked at.
func awaitEnd(ctx context.Context, pid int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, state := statusOf(pid); state == "" || state == "Z" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d did not end in time: %w", pid, ctx.Err())
		}
	}
}

// childrenOf finds the children of a process. On a system without /proc it finds none; PostgreSQL's then end by themselves, a moment later.
func childrenOf(pid int) (children []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		child, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if parent, _ := statusOf(child); parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// statusOf returns a process's parent and its state, "Z" for one that has ended but was not waited for; "" if there is none.
func statusOf(pid int) (parent int, state string) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, ""
	}
	// The name before the last bracket may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0, ""
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0]
}
