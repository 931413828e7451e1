package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-go/caisson/internal/testserver"
)

// example is one command of a document, with what it prints and its exit code.
type example struct {
	line   int
	script string
	want   []string
	code   int
}

var exitNote = regexp.MustCompile(`\s+# exit (\d+)$`)

// examples reads the commands in the console blocks of a document.
func examples(t *testing.T, name string) []example {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	inside := false
	for i, line := range strings.Split(string(data), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && isCommand:
			e := example{line: i + 1, script: command}
			if m := exitNote.FindStringSubmatch(command); m != nil {
				e.script = strings.TrimSuffix(command, m[0])
				e.code, _ = strconv.Atoi(m[1])
			}
			list = append(list, e)
		case inside:
			last := &list[len(list)-1]
			last.want = append(last.want, line)
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d examples in %s: the document was not understood", len(list), name)
	}
	return list
}

// matches reports whether got is want, in which … stands for any text.
func matches(want []string, got string) bool {
	pattern := regexp.QuoteMeta(strings.Join(want, "\n"))
	pattern = strings.ReplaceAll(pattern, "…", `[\s\S]*`)
	return regexp.MustCompile(`^` + pattern + `\s*$`).MatchString(got)
}

// The commands of the documents do and print what they say.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for name, delayed := range map[string]int64{
		"cli.md":                1, // a job that is due in ten minutes
		"guide-dead-letters.md": 0,
		"guide-idempotency.md":  0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, bin, "../../docs/"+name, delayed)
		})
	}
}

var isWorker = regexp.MustCompile(`^(worker|billing) run`)

// follow runs the examples of a document in an empty directory, at whose end so many jobs may be delayed. A database that is exported is one of the
// test's own.
func follow(t *testing.T, bin, name string, delayed int64) {
	dir := t.TempDir()
	t.Cleanup(func() { stopBackground(t, dir) })
	var exported []string
	for _, e := range examples(t, name) {
		if strings.HasPrefix(e.script, "export CAISSON_POSTGRES_URL=") {
			exported = append(exported, "CAISSON_POSTGRES_URL="+testserver.StartPostgres(t).URL())
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", e.script)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
		cmd.Env = append(cmd.Env, exported...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if isWorker.MatchString(e.script) {
			stopWhenIdle(t, cmd, filepath.Join(dir, "caisson.db"), e.script, delayed)
		} else if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != e.code || !matches(e.want, out.String()) {
			t.Errorf("%s, line %d: %s\nexit code %d, want %d; printed:\n%s\nwant:\n%s", name, e.line, e.script, code, e.code, &out, strings.Join(e.want, "\n"))
		}
	}
}

// stopBackground ends the worker that a document has started in the background, if it is still there.
func stopBackground(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "worker.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	pid, numErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := errors.Join(err, numErr); err != nil {
		t.Error(err)
		return
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill() // it has ended, or it must
	}
}

// build makes the programs and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{dir + string(filepath.Separator), "../worker", "../../examples/billing", "."},
		{filepath.Join(dir, "shop"), "../../examples/postgres"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

// stopWhenIdle runs a worker until nothing is ready or in flight, then stops it as an operator would.
func stopWhenIdle(t *testing.T, cmd *exec.Cmd, db, script string, delayed int64) {
	t.Helper()
	cmd.Args[2] = "exec " + script // the signal is for the worker, not for the shell
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := open(t, db)
	eventually(t, "nothing is left to do", func() bool {
		d, err := s.Broker.Depth(t.Context(), "default")
		return err == nil && d.Ready.N == 0 && d.InFlight.N == 0 && d.Delayed.N <= delayed
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
