//go:build unix

package testserver

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog kills a server when the test's process ends without having done so: after a panic, a timeout or a kill. It waits for the
// end of a pipe whose other end that process holds.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

func watch(group int, dir string) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command("sh", "-c", `read -r _; kill -s KILL -- "-$1"; sleep 1; rm -rf -- "$2"`, //nolint:noctx // ended by dismiss
		"watchdog", strconv.Itoa(group), dir)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of a Ctrl-C
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &watchdog{cmd: cmd, pipe: w}, nil
}

// dismiss ends the watchdog before the pipe does.
func (w *watchdog) dismiss() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	_ = w.pipe.Close()
}
