//go:build unix

package testserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWatchdogEndsWhatIsLeft closes the pipe, as the end of this process would, and finds neither process nor directory.
func TestWatchdogEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "node")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dog, err := watch(cmd.Process.Pid, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := dog.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended with %v, want a kill", err)
	}
	if err := dog.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the directory is left: %v", err)
	}
}
