package dlqcmd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// example is one command of a document, with what it prints and its exit code; or a file that the document asks for.
type example struct {
	line   int
	script string
	want   []string
	code   int
	file   string // its name; want are its lines
}

var (
	exitNote = regexp.MustCompile(`\s+# exit (\d+)$`)
	// endless is a loop that only success ends.
	endless = regexp.MustCompile(`\b(until|while)\b.*; do\b`)
	// fileNote is the first line of a block that is a file.
	fileNote = regexp.MustCompile(`^# (\w+\.yaml)$`)
)

// examples reads the commands in the console blocks of a document, and the files in its yaml blocks.
func examples(t *testing.T, name string) []example {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	block := ""
	for i, line := range strings.Split(string(data), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		file := fileNote.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			block = strings.TrimPrefix(line, "```")
		case block == "yaml" && file != nil:
			list = append(list, example{line: i + 1, file: file[1]})
			block = "file"
		case block == "console" && isCommand:
			e := example{line: i + 1, script: command}
			if m := exitNote.FindStringSubmatch(command); m != nil {
				e.script = strings.TrimSuffix(command, m[0])
				e.code, _ = strconv.Atoi(m[1])
			}
			if endless.MatchString(e.script) {
				t.Errorf("%s, line %d: %s\nwaits for ever where something goes wrong: count the turns", name, i+1, e.script)
			}
			list = append(list, e)
		case block == "console" || block == "file":
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

// document is what its examples need and leave behind.
type document struct {
	delayed int64    // jobs that are delayed at its end
	files   []string // that the directory holds at its beginning, from the root of the repository
	ports   bool     // it names ports of this machine: the test takes others, which are free
	tls     bool     // and a certificate, its key and an authority
}

// The commands of the documents do and print what they say.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for name, doc := range map[string]document{
		"cli.md":                {delayed: 1}, // a job that is due in ten minutes
		"guide-dead-letters.md": {},
		"guide-idempotency.md":  {},
		"guide-webhooks.md": {
			ports: true, tls: true, files: []string{"examples/receivers/python/receiver.py", "examples/receivers/node/receiver.js"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, bin, "../../../docs/"+name, doc)
		})
	}
}

var isWorker = regexp.MustCompile(`^(worker|billing) run`)

// commandTime ends a command that waits for what does not come.
const commandTime = 3 * time.Minute

// follow runs the examples of a document in a directory of its own. A variable that is exported holds for the commands after it; a database is one
// of the test's own.
func follow(t *testing.T, bin, name string, doc document) {
	dir := t.TempDir()
	t.Cleanup(func() { stopBackground(t, dir) })
	for _, file := range doc.files {
		copyFile(t, "../../../"+file, filepath.Join(dir, filepath.Base(file)))
	}
	if doc.tls {
		writeCertificate(t, dir)
	}
	list := examples(t, name)
	if doc.ports {
		takeFreePorts(t, list)
	}
	env := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, e := range list {
		if e.file != "" {
			writeText(t, filepath.Join(dir, e.file), strings.Join(e.want, "\n")+"\n")
			continue
		}
		if variable, ok := strings.CutPrefix(e.script, "export "); ok {
			if strings.HasPrefix(variable, "CAISSON_POSTGRES_URL=") {
				variable = "CAISSON_POSTGRES_URL=" + testserver.StartPostgres(t).URL()
			}
			env = append(env, variable)
			continue
		}
		if out, code := runExample(t, e, dir, env, doc.delayed); code != e.code || !matches(e.want, out) {
			t.Errorf("%s, line %d: %s\nexit code %d, want %d; printed:\n%s\nwant:\n%s", name, e.line, e.script, code, e.code, out, strings.Join(e.want, "\n"))
		}
	}
}

// runExample runs one example and returns what it printed and its exit code.
func runExample(t *testing.T, e example, dir string, env []string, delayed int64) (printed string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", e.script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if isWorker.MatchString(e.script) {
		stopWhenIdle(t, cmd, filepath.Join(dir, "caisson.db"), e.script, delayed)
	} else if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, to, string(data))
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeCertificate makes the PEM files that a document says its reader has.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ours.pem": {Type: "CERTIFICATE", Bytes: certificate}, "ours.key": {Type: "PRIVATE KEY", Bytes: key}, "their-ca.pem": {Type: "CERTIFICATE", Bytes: certificate},
	} {
		writeText(t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
}

var localPort = regexp.MustCompile(`127\.0\.0\.1:(\d{4,5})\b`)

// takeFreePorts puts free ports in the place of those that the examples name after 127.0.0.1, wherever they do.
func takeFreePorts(t *testing.T, list []example) {
	t.Helper()
	free := map[string]string{}
	each := func(change func(text string) string) {
		for i := range list {
			list[i].script = change(list[i].script)
			for j := range list[i].want {
				list[i].want[j] = change(list[i].want[j])
			}
		}
	}
	var names []string
	each(func(text string) string {
		for _, m := range localPort.FindAllStringSubmatch(text, -1) {
			if free[m[1]] == "" {
				free[m[1]] = freePort(t)
				names = append(names, m[1])
			}
		}
		return text
	})
	if len(names) == 0 {
		t.Fatal("no port is named: the document was not understood")
	}
	named := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	each(func(text string) string {
		return named.ReplaceAllStringFunc(text, func(port string) string { return free[port] })
	})
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// stopBackground ends what a document has started in the background, if it is still there.
func stopBackground(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		pid, numErr := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, numErr); err != nil {
			t.Error(err)
			continue
		}
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill() // it has ended, or it must
		}
	}
}

// build makes the programs and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{dir + string(filepath.Separator), "../../../cmd/worker", "../../../examples/billing", "../../../examples/publisher", "../../../cmd/dlq-replay"},
		{filepath.Join(dir, "shop"), "../../../examples/postgres"},
		{filepath.Join(dir, "receiver"), "../../../examples/receivers/golang"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-ldflags=-s -w", "-o"}, args...)...)
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
	eventually.True(t, "nothing is left to do", func() bool {
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
