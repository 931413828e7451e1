package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// envProgram makes the test binary the program itself.
const envProgram = "GREETER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const goRun = "go run ./examples/greeter"

// The commands of the two brokers' READMEs, as written, from a running broker to a greeting.
func TestREADMEs(t *testing.T) {
	t.Parallel()
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		follow(t, "rabbitmq", "CAISSON_RABBITMQ_URLS="+testserver.AMQP(t))
	})
	t.Run("sqs", func(t *testing.T) {
		t.Parallel()
		follow(t, "sqs", "CAISSON_SQS_ENDPOINT="+testserver.SQS(t))
	})
}

// follow runs the first command of a README until it is greeted, and the others meanwhile.
func follow(t *testing.T, broker, server string) {
	commands := commandsOf(t, filepath.Join("..", broker, "README.md"))
	if len(commands) < 3 {
		t.Fatalf("the README has the commands %q, want those to run, enqueue and look", commands)
	}
	call := func(ctx context.Context, line string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.Replace(line, goRun, "exec "+os.Args[0], 1))
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), envProgram+"=1", server, "CAISSON_ADMIN_ADDR=off", "CAISSON_QUEUES=greetings-test") // not where somebody else may listen
		return cmd
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	greeted := &watch{want: "hello, Ada", seen: make(chan struct{})}
	worker := call(ctx, commands[0])
	worker.Stdout, worker.Stderr = greeted, greeted
	worker.Cancel = func() error { return worker.Process.Signal(syscall.SIGTERM) }
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	for _, line := range commands[1:] {
		// The queue is made by the worker, which may still be about to.
		for out, err := call(ctx, line).CombinedOutput(); err != nil; out, err = call(ctx, line).CombinedOutput() {
			if !strings.Contains(string(out), "queue not found") {
				t.Errorf("%s: %v\n%s", line, err, out)
				break
			}
		}
	}
	select {
	case <-greeted.seen:
	case <-ctx.Done():
		t.Errorf("no greeting within a minute; the worker said:\n%s", greeted.text())
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("worker: %v\n%s", err, greeted.text())
	}
}

// commandsOf returns the greeter's command lines in a README.
func commandsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, goRun) {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	return commands
}

// watch keeps what is written and tells when a text has come.
type watch struct {
	want string
	seen chan struct{}

	mu  sync.Mutex
	all strings.Builder
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.all.String(), w.want)
	w.all.Write(p)
	if !before && strings.Contains(w.all.String(), w.want) {
		close(w.seen)
	}
	return len(p), nil
}

func (w *watch) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
