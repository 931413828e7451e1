package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// envProgram makes the test binary the program itself.
const envProgram = "SHOP_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const goRun = "go run ./examples/postgres"

// The commands of the README as written, on a database of the test's own and the embedded queue.
func TestREADME(t *testing.T) {
	t.Parallel()
	server, dir := testserver.StartPostgres(t), t.TempDir()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^`+goRun+`.*$`).FindAllString(string(text), -1)
	table := regexp.MustCompile(`CREATE TABLE [^']*`).FindString(string(text))
	if len(lines) != 4 || table == "" {
		t.Fatalf("the README has the commands %q and the table %q", lines, table)
	}
	command := func(line string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, goRun, "exec "+os.Args[0], 1))
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), envProgram+"=1", "CAISSON_POSTGRES_URL="+server.URL(), "CAISSON_BROKER=embedded",
			"CAISSON_EMBEDDED_PATH="+filepath.Join(dir, "q.db"), "CAISSON_ADMIN_ADDR=off")
		return cmd
	}
	run := func(line string) {
		t.Helper()
		if out, err := command(line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	run(lines[0])
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	log := &output{}
	worker := command(lines[1])
	worker.Stdout, worker.Stderr = log, log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	run(lines[2])
	run(lines[3])
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "receipt for order o-1") && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	var orders int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM shop_orders`).Scan(&orders); err != nil || orders != 1 {
		t.Errorf("%d orders, %v", orders, err)
	}
	if n := strings.Count(log.String(), "receipt for order o-1"); n != 1 {
		t.Errorf("%d receipts\n%s", n, log)
	}
}

// output is what the worker prints.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
