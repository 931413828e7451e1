package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// process is a program of its own: the test binary with the kinds of programKinds.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	log     *buffer
	effects string
	waited  bool
}

// spawn starts `run` on dir/q.db. Extra variables come after the program's own.
func spawn(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	log := &buffer{}
	p := spawnLogging(t, log, dir, env, args...)
	p.log = log
	return p
}

func spawnLogging(t *testing.T, log io.Writer, dir string, env []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, effects: filepath.Join(dir, "effects")}
	args = append([]string{"run", "--db", filepath.Join(dir, "q.db"), "--admin-addr", "off", "--set", "lease=1s"}, args...)
	p.cmd = exec.CommandContext(t.Context(), exe, args...)
	p.cmd.Env = append([]string{envProgram + "=1", envEffects + "=" + p.effects}, env...)
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.waited {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code, -1 after a kill.
func (p *process) exit() int {
	p.t.Helper()
	err := p.cmd.Wait()
	p.waited = true
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// lines are the effects so far.
func (p *process) lines() []string {
	data, err := os.ReadFile(p.effects)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return strings.FieldsFunc(string(bytes.TrimSpace(data)), func(r rune) bool { return r == '\n' })
}

func (p *process) await(line string) {
	p.t.Helper()
	eventually.True(p.t, "effect "+line, func() bool {
		for _, l := range p.lines() {
			if l == line {
				return true
			}
		}
		return false
	})
}

// Field case B1: jobs that ended before the stop are acked by it, and none of them runs again.
func TestStopFlushesAcks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "q.db")
	ok(t, call(t, "", nil, "enqueue", "quick", "--count", "3", "--id", "j", "--db", db))
	p := spawn(t, dir, nil)
	eventually.True(t, "the third job ended", func() bool { return len(p.lines()) == 3 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.log)
	}
	if got := depth(t, db, "default"); got != [3]int{} {
		t.Errorf("messages left after the stop: %v", got)
	}
	ok(t, call(t, "", nil, "enqueue", "quick", "--id", "last", "--db", db))
	p = spawn(t, dir, nil)
	p.await("done last 1")
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code after SIGINT %d\n%s", code, p.log)
	}
	if got := p.lines(); len(got) != 4 {
		t.Errorf("effects %q, want 4: a finished job ran again", got)
	}
}

// A worker whose log has lost its reader goes on without it, and still stops gracefully: it would otherwise die at its next line like by
// kill -9, in the middle of its jobs.
func TestLostLogReaderStopsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := spawnLogging(t, write, dir, nil)
	if err := errors.Join(write.Close(), read.Close()); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "q.db")
	ok(t, call(t, "", nil, "enqueue", "quick", "--count", "3", "--id", "j", "--db", db))
	eventually.True(t, "the third job ended", func() bool { return len(p.lines()) == 3 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := depth(t, db, "default"); got != [3]int{} {
		t.Errorf("messages left after the stop: %v", got)
	}
}

// Field case B2: a handler that ignores its context does not hold the stop beyond grace and hard limit.
func TestStopLeavesDeafHandlerBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "q.db")
	ok(t, call(t, "", nil, "enqueue", "hang", "--id", "deaf", "--db", db))
	p := spawn(t, dir, nil, "--stop-grace", "100ms", "--set", "stop.hard=100ms")
	p.await("begun deaf 1")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 3 {
		t.Errorf("exit code %d, want 3\n%s", code, p.log)
	}
	if log := p.log.String(); !strings.Contains(log, "abandoned: hang deaf") {
		t.Errorf("the abandoned job is not named:\n%s", log)
	}
	if got := depth(t, db, "default"); got != [3]int{1, 0, 0} {
		t.Errorf("depth %v, want the job ready again at once", got)
	}
	p = spawn(t, dir, []string{envObey + "=1"})
	p.await("done deaf 1") // the stop has spent no attempt
}

// Field case B2, variant: a second signal ends the process at once, whatever the grace; the lease brings the job back.
func TestSecondSignalExitsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "q.db")
	ok(t, call(t, "", nil, "enqueue", "hang", "--id", "deaf", "--db", db))
	p := spawn(t, dir, nil, "--stop-grace", "10m")
	p.await("begun deaf 1")
	p.signal(syscall.SIGTERM)
	eventually.True(t, "the stop has begun", func() bool { return strings.Contains(p.log.String(), "stopping") })
	time.Sleep(600 * time.Millisecond) // what comes sooner counts as the first one
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, p.log)
	}
	p = spawn(t, dir, []string{envObey + "=1"})
	p.await("done deaf 2") // like a crash, it has
}

// Like field case H1: after kill -9 in the middle of a job another worker takes over within a lease, and is no duplicate.
func TestKilledWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "q.db")
	ok(t, call(t, "", nil, "enqueue", "hang", "--id", "cut", "--key", "k", "--db", db))
	first := spawn(t, dir, nil)
	first.await("begun cut 1")
	first.signal(syscall.SIGKILL)
	if code := first.exit(); code != -1 {
		t.Fatalf("exit code %d after a kill", code)
	}
	second := spawn(t, dir, []string{envObey + "=1"})
	second.await("done cut 2")
	eventually.True(t, "the job is acked", func() bool { return depth(t, db, "default") == [3]int{} })
	second.signal(syscall.SIGTERM)
	if code := second.exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, second.log)
	}
	if got := fmt.Sprint(second.lines()); got != "[begun cut 1 done cut 2]" {
		t.Errorf("effects %s", got)
	}
}
