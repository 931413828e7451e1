package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
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

// The commands of docs/cli.md do and print what the document says.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	bin, dir := build(t), t.TempDir()
	for _, e := range examples(t, "../../docs/cli.md") {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", e.script)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if strings.HasPrefix(e.script, "worker run") {
			stopWhenIdle(t, cmd, filepath.Join(dir, "caisson.db"), e.script)
		} else if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != e.code || !matches(e.want, out.String()) {
			t.Errorf("docs/cli.md, line %d: %s\nexit code %d, want %d; printed:\n%s\nwant:\n%s", e.line, e.script, code, e.code, &out, strings.Join(e.want, "\n"))
		}
	}
}

// build makes both programs and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "../worker", ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// stopWhenIdle runs a worker until nothing is ready or in flight, then stops it as an operator would.
func stopWhenIdle(t *testing.T, cmd *exec.Cmd, db, script string) {
	t.Helper()
	cmd.Args[2] = "exec " + script // the signal is for the worker, not for the shell
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := open(t, db)
	eventually(t, "nothing is left to do", func() bool {
		d, err := s.Broker.Depth(t.Context(), "default")
		return err == nil && d.Ready.N == 0 && d.InFlight.N == 0
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
