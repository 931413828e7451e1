package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// block is a fenced block of README.md.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func readme(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []block
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		list = append(list, block{m[1], m[2]})
	}
	return list
}

// The program in README.md is the one that is built here.
func TestREADMEQuotesTheProgram(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range readme(t) {
		if b.language == "go" {
			if b.text != string(source) {
				t.Errorf("README.md and examples/mailer/main.go differ")
			}
			return
		}
	}
	t.Error("README.md has no program")
}

// The commands of README.md do what it says, from an empty directory to a greeting and to a verified webhook delivery.
func TestREADMECommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "mailer"), ".")
	compile(t, filepath.Join(dir, "receiver"), "../receivers/golang")
	s := &shell{dir: dir, env: append(os.Environ(), "CAISSON_ADMIN_ADDR=off"), port: freePort(t)}
	t.Cleanup(func() { s.stop(t) })

	for _, b := range readme(t) {
		switch {
		case b.language == "yaml" && strings.HasPrefix(b.text, "# caisson.yaml\n"):
			s.write(t, "caisson.yaml", b.text)
		case b.language == "sh" && strings.Contains(b.text, "mailer enqueue"):
			s.follow(t, b.text)
			s.await(t, "welcome, ada@example.com")
			s.stop(t)
		case b.language == "sh" && strings.Contains(b.text, "events publish"):
			commands, last, ok := strings.Cut(b.text, "./mailer endpoints attempts shop")
			if !ok {
				t.Fatalf("README.md does not look at the attempts:\n%s", b.text)
			}
			s.follow(t, commands)
			s.await(t, "received invoice-7-paid")
			s.attempts(t, "./mailer endpoints attempts shop"+last)
			return
		}
	}
	t.Error("README.md publishes no event")
}

// shell follows commands in a directory; what runs in the background is got.
type shell struct {
	dir, port string
	env       []string
	got       record
	running   []*exec.Cmd
}

// local is the port of the receiver in README.md, wherever it stands.
var local = regexp.MustCompile(`\b8001\b`)

func (s *shell) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(local.ReplaceAllString(text, s.port)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// follow runs each line to its end, a worker or a receiver beside those that follow.
func (s *shell) follow(t *testing.T, script string) {
	t.Helper()
	for line := range strings.Lines(local.ReplaceAllString(script, s.port)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "&"))
		switch {
		case line == "" || strings.HasPrefix(line, "go "): // what they build is there
		case strings.HasPrefix(line, "export "):
			s.env = append(s.env, strings.TrimPrefix(line, "export "))
		case line == "./mailer run":
			s.start(t, "exec "+line)
		case strings.Contains(line, "./receiver "):
			s.start(t, strings.Replace(line, "./receiver", "exec ./receiver", 1))
		default:
			if out, err := s.command(t.Context(), line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s\nin the background:\n%s", line, err, out, s.got.text())
			}
		}
	}
}

func (s *shell) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.env, time.Second
	return cmd
}

func (s *shell) start(t *testing.T, line string) {
	t.Helper()
	cmd := s.command(context.WithoutCancel(t.Context()), line)
	cmd.Stdout, cmd.Stderr = &s.got, &s.got
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.running = append(s.running, cmd)
}

// stop ends what runs in the background.
func (s *shell) stop(t *testing.T) {
	t.Helper()
	for _, cmd := range s.running {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = cmd.Wait() // the receiver ends by the signal
	}
	s.running = nil
}

// await waits until something in the background has printed want.
func (s *shell) await(t *testing.T, want string) {
	t.Helper()
	eventually.NoError(t, func() error {
		if text := s.got.text(); !strings.Contains(text, want) {
			return fmt.Errorf("nothing printed %s:\n%s", want, text)
		}
		return nil
	})
}

// attempts repeats a command until it shows an answer 204: attempts are written behind the deliveries.
func (s *shell) attempts(t *testing.T, line string) {
	t.Helper()
	eventually.NoError(t, func() error {
		if out, _ := s.command(t.Context(), line).CombinedOutput(); !strings.Contains(string(out), "204") {
			return fmt.Errorf("%s:\n%s", line, out)
		}
		return nil
	})
}

func compile(t *testing.T, program, from string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, from).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// record keeps what programs print, until somebody looks.
type record struct {
	mu  sync.Mutex
	all strings.Builder
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}
