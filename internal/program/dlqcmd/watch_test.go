package dlqcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// screen is a writer that can be read meanwhile.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// watching runs watch until the function that it returns is called, which returns the exit code.
func watching(t *testing.T, open func(context.Context, *tool, []string) cli.Code, args ...string) (out *screen, stop func() cli.Code) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = &screen{}
	done := make(chan cli.Code, 1)
	go func() {
		tool := newTool(&cli.Program{Name: standalone, IO: cli.IO{In: strings.NewReader(""), Out: out, Err: out}}, standalone)
		done <- open(ctx, tool, append([]string{"watch", "--interval", "100ms"}, args...))
	}()
	return out, func() cli.Code {
		cancel()
		return <-done
	}
}

func runTool(ctx context.Context, t *tool, args []string) cli.Code { return t.run(ctx, args) }

func runOnBroker(ctx context.Context, t *tool, args []string) cli.Code {
	t.openBackends = brokerStack
	return t.run(ctx, args)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	path, s := many(t, 2)
	out, stop := watching(t, runTool, "--db", path)
	has := func(text string) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("%q in\n%s", text, out), func() bool { return strings.Contains(out.String(), text) })
	}
	has("now    2  q  work  shop  exhausted  ")
	seed(t, s, letter(t, "new", "q", "other", []byte("n"), nil), letter(t, "more", "q", "work", []byte("n"), nil), letter(t, "else", "r", "work", []byte("n"), nil))
	has("new    1 (+1)  q  other  shop")
	has("new    1 (+1)  r  work  shop")
	has("more   3 (+1)  q  work  shop")
	if n, err := s.Letters.Purge(t.Context(), dlq.Filter{Kind: "work", IDs: []string{"more.0"}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	has("fewer  2 (-1)  q  work  shop")
	if n, err := s.Letters.Purge(t.Context(), dlq.Filter{Kind: "other"}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	has("gone   0 (-1)  q  other  shop")
	if code := stop(); code != cli.OK {
		t.Errorf("code %d\n%s", code, out)
	}
}

func TestWatchJSON(t *testing.T) {
	t.Parallel()
	path, s := many(t, 2)
	out, stop := watching(t, runTool, "--json", "--kind", "work", "--db", path)
	eventually.True(t, "the start", func() bool { return strings.Count(out.String(), "\n") == 1 })
	seed(t, s, letter(t, "other", "q", "other", []byte("n"), nil), letter(t, "more", "q", "work", []byte("n"), nil))
	eventually.True(t, "the change", func() bool { return strings.Count(out.String(), "\n") == 2 })
	if code := stop(); code != cli.OK {
		t.Errorf("code %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []watched{{Event: "now"}, {Event: "more", Change: 1}} {
		var got watched
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if got.Event != want.Event || got.Change != want.Change || got.Count != 2+want.Change || got.Queue != "q" || got.Kind != "work" || got.At.IsZero() || got.Fingerprint == "" {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
}

// Of dead letters in the broker the queues alone can be followed.
func TestWatchInTheBroker(t *testing.T) {
	t.Parallel()
	db, _ := threeInBroker(t)
	out, stop := watching(t, runOnBroker, "--db", db)
	eventually.True(t, "the queue is there", func() bool { return strings.Contains(out.String(), "now    3  mail  -  -  ") })
	if code := stop(); code != cli.OK {
		t.Errorf("code %d\n%s", code, out)
	}
	if r := callBroker(t, "watch", "--kind", "x", "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "dlq-replay import") {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
	if r := callBroker(t, "audit", "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "dlq-replay import") {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
	if r := callBroker(t, "replay", "--all", "--yes", "--wait-breaker", "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "dlq-replay import") {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
}

// Ctrl-C is how it ends.
func TestInterruptedWatchExitsWith0(t *testing.T) {
	t.Parallel()
	path, _ := many(t, 2)
	cmd, errs := spawn(t, "watch", "--kind", "none", "--db", path)
	eventually.True(t, "it has looked", func() bool { return strings.Contains(errs.String(), "nothing matches yet") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs)
	}
}

func TestPictureFitsTheScreen(t *testing.T) {
	t.Parallel()
	var groups []queueGroup
	for i := range 50 {
		groups = append(groups, queueGroup{"q", dlq.Group{Kind: fmt.Sprintf("k%02d", i), Cause: dlq.CauseExhausted, Count: 100 - i, Sample: "boom\x1b[2J"}})
	}
	lines := picture(&watch{}, groups, map[[5]string]int{groups[0].place(): 7}, 24)
	if len(lines) > 23 || !strings.Contains(lines[3], "100    +7      q      k00") || lines[len(lines)-1] != "and 31 more groups" {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if strings.Contains(strings.Join(lines, ""), "\x1b") {
		t.Error("an error text drives the terminal")
	}
}
