package outside

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

// TestOutsideModule builds a module that may not import internal packages, with claims in SQLite beside RabbitMQ: a job that is enqueued
// twice runs once.
func TestOutsideModule(t *testing.T) {
	t.Parallel()
	url := testserver.AMQP(t)
	name := "outside-" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() { deleteQueue(t, url, name) })
	dir := makeModule(t)
	program := filepath.Join(dir, "outside")
	run(t, dir, "go", "build", "-mod=mod", "-o", program, ".")
	lines := strings.Split(strings.TrimSpace(run(t, dir, program, url, name, t.TempDir())), "\n")
	slices.Sort(lines)
	if diff := cmp.Diff([]string{"outcome: duplicate", "outcome: succeeded", "runs: 1"}, lines); diff != "" {
		t.Error(diff)
	}
}

// makeModule returns the directory of the module. It requires what Caisson does, so that nothing has to be downloaded.
func makeModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod := string(read(t, filepath.Join(root, "go.mod")))
	_, rest, ok := strings.Cut(mod, "module github.com/caisson-go/caisson\n")
	if !ok {
		t.Fatal("go.mod does not begin with the module's name")
	}
	mod = fmt.Sprintf("module example.com/outside\n%s\nrequire github.com/caisson-go/caisson v0.0.0\n\nreplace github.com/caisson-go/caisson => %s\n", rest, root)
	for name, content := range map[string][]byte{
		"go.mod": []byte(mod), "go.sum": read(t, filepath.Join(root, "go.sum")), "main.go": read(t, "testdata/module/main.go"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(program), err, out, errs.String())
	}
	return string(out)
}

func deleteQueue(t *testing.T, url, name string) {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		t.Error(err)
		return
	}
	for _, full := range []string{"cs1." + name, "cs1." + queue.DLQ(name)} {
		if _, err := ch.QueueDelete(full, false, false, false); err != nil {
			t.Error(err)
		}
	}
}
