package receivers

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/webhook/signature"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// commands returns how each receiver is started.
func commands(t *testing.T) map[string][]string {
	t.Helper()
	golang := filepath.Join(t.TempDir(), "receiver")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", golang, "./golang").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return map[string][]string{
		"golang": {golang},
		"python": {interpreter(t, "python3"), "python/receiver.py"},
		"node":   {interpreter(t, "node"), "node/receiver.js"},
	}
}

// interpreter finds a program that the tests cannot do without.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: a receiver of docs/guide-webhooks.md runs with it. Run make services as root, which installs it on Debian; elsewhere install Python 3.8 and Node.js 18.3, or newer", err)
	}
	return path
}

// receiver is a receiver at work, in a process of its own.
type receiver struct {
	url   string
	lines <-chan string
}

// start runs a receiver that knows these secrets until the test ends.
func start(t *testing.T, command []string, secrets ...signature.Secret) receiver {
	t.Helper()
	var texts []string
	for _, s := range secrets {
		texts = append(texts, s.Reveal())
	}
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], "0")...)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRETS="+strings.Join(texts, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-read
		_ = cmd.Wait() // it was killed
	})
	r := receiver{lines: lines}
	url, ok := strings.CutPrefix(r.line(t), "listening on ")
	if !ok {
		t.Fatalf("%v does not say where it listens", command)
	}
	r.url = url
	return r
}

// line returns the next line that the receiver prints.
func (r receiver) line(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-r.lines:
		if !ok {
			t.Fatal("the receiver has ended")
		}
		return line
	case <-time.After(2 * time.Minute):
		t.Fatal("the receiver prints nothing")
	}
	return ""
}
