package dlqcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// terminal opens a pseudo-terminal: the person's side and the program's.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var number, unlock int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 { //nolint:gosec // ioctl takes a pointer
			t.Fatal(errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// onTerminal runs a command on a terminal where a person answers a question, and returns the exit code and what was on the screen.
func onTerminal(t *testing.T, answer string, args ...string) (cli.Code, string) {
	t.Helper()
	return answering(t, func() string { return answer }, args...)
}

func answering(t *testing.T, answer func() string, args ...string) (cli.Code, string) {
	t.Helper()
	person, program := terminal(t)
	var screen strings.Builder
	var reading sync.WaitGroup
	reading.Go(func() {
		defer func() { _ = person.Close() }()
		buf := make([]byte, 4096)
		for answered := false; ; {
			n, err := person.Read(buf)
			screen.Write(buf[:n])
			if !answered && strings.Contains(screen.String(), "[y/N]") {
				answered = true
				if _, err := person.WriteString(answer()); err != nil {
					t.Error(err)
				}
			}
			if err != nil {
				return // the program's side was closed
			}
		}
	})
	var out strings.Builder
	code := Run(t.Context(), args, cli.IO{In: program, Out: &out, Err: program})
	if err := program.Close(); err != nil {
		t.Error(err)
	}
	reading.Wait()
	return code, screen.String()
}

func TestAsksOnATerminal(t *testing.T) {
	t.Parallel()
	path, s := many(t, 5)
	code, screen := onTerminal(t, "n\n", "replay", "--all", "--db", path)
	if code != cli.Failure || !strings.Contains(screen, "Replay 5 jobs to queues q (5), for destinations shop (5)? [y/N]") || !strings.Contains(screen, "nothing was changed") {
		t.Errorf("answer no: code %d\n%s", code, screen)
	}
	if dead := count(t, s, dlq.StateDead); dead != 5 {
		t.Fatalf("%d are dead after a no", dead)
	}
	code, screen = onTerminal(t, "y\n", "replay", "--all", "--db", path)
	if code != cli.OK || !strings.Contains(screen, "replaying") {
		t.Errorf("answer yes: code %d, no progress bar?\n%q", code, screen)
	}
	if dead := count(t, s, dlq.StateDead); dead != 0 {
		t.Errorf("%d are dead after a yes", dead)
	}
	code, screen = onTerminal(t, "y\n", "purge", "--all", "--state", "replayed", "--db", path)
	if code != cli.OK || count(t, s, dlq.StatePurged) != 5 {
		t.Errorf("purge: code %d\n%s", code, screen)
	}
}

// What dies while a purge waits for its answer was not part of the question.
func TestPurgeTakesWhatItAskedAbout(t *testing.T) {
	t.Parallel()
	path, s := many(t, 2)
	code, screen := answering(t, func() string {
		seed(t, s, letter(t, "later", "q", "work", []byte("n"), nil))
		return "y\n"
	}, "purge", "--all", "--db", path)
	if code != cli.OK || !strings.Contains(screen, "Purge 2 entries?") {
		t.Errorf("code %d\n%s", code, screen)
	}
	if purged, dead := count(t, s, dlq.StatePurged), count(t, s, dlq.StateDead); purged != 2 || dead != 1 {
		t.Errorf("%d purged, %d dead; want 2 and the one that came later", purged, dead)
	}
}

// On a terminal watch draws its table anew.
func TestWatchRedrawsOnATerminal(t *testing.T) {
	t.Parallel()
	path, s := many(t, 2)
	person, program := terminal(t)
	seen := &screen{}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer func() { _ = person.Close() }()
		_, _ = io.Copy(seen, person) // ends when the program's side is closed
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan cli.Code, 1)
	go func() {
		done <- Run(ctx, []string{"watch", "--interval", "100ms", "--db", path}, cli.IO{In: strings.NewReader(""), Out: program, Err: program})
	}()
	eventually.True(t, "the table is drawn", func() bool { return strings.Contains(seen.String(), "2 entries in 1 groups, +0 since") })
	seed(t, s, letter(t, "more", "q", "work", []byte("n"), nil))
	eventually.True(t, "it is drawn anew", func() bool { return strings.Contains(seen.String(), "3 entries in 1 groups, +1 since") })
	cancel()
	if code := <-done; code != cli.OK {
		t.Errorf("code %d", code)
	}
	if err := program.Close(); err != nil {
		t.Error(err)
	}
	reading.Wait()
	if text := seen.String(); strings.Count(text, clearAll) != 1 || strings.Count(text, cursorHome) < 2 {
		t.Errorf("screen: %q", text)
	}
}
