package dlqcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

// postgresPlace keeps claims and dead letters in PostgreSQL, and the queues in a file.
func postgresPlace(t *testing.T) place {
	t.Helper()
	_, schema := testserver.Schema(t)
	keys := map[string]string{
		"embedded.path": filepath.Join(t.TempDir(), "q.db"), "store": "postgres", "postgres.url": testserver.Postgres(t), "postgres.schema": schema,
	}
	cfg, _, err := config.Load(config.Sources{Flags: keys})
	if err != nil {
		t.Fatal(err)
	}
	s, err := backends.Open(t.Context(), cfg, backends.Create, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	p := place{Set: s}
	for key, value := range keys {
		p.args = append(p.args, "--set", key+"="+value)
	}
	return p
}

func TestPileOfDeadLettersInPostgres(t *testing.T) {
	t.Parallel()
	replayPile(t, postgresPlace(t))
}

// large puts n dead jobs of 100 KB into queue q.
func large(t *testing.T, p place, n int) {
	t.Helper()
	if err := p.Broker.CreateQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("x", 100<<10)
	for start := 0; start < n; start += 50 {
		var entries []dlq.Entry
		for i := start; i < min(n, start+50); i++ {
			entries = append(entries, letter(t, soakID(i), "q", "work", []byte(soakID(i)+body), nil))
		}
		if err := errors.Join(p.Letters.Put(t.Context(), entries)...); err != nil {
			t.Fatal(err)
		}
	}
}

// inQueue counts the messages of each job, as run 1 and unchanged.
func inQueue(t *testing.T, p place) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, m := range drain(t, p.Set, "q") {
		e, err := m.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		if e.Run != 1 || len(m.Body) != len(e.ID)+100<<10 || !strings.HasPrefix(string(m.Body), e.ID) {
			t.Errorf("job %s came as run %d with %d bytes", e.ID, e.Run, len(m.Body))
		}
		found[e.ID]++
	}
	return found
}

// Field case G4 on PostgreSQL: (c) a missing target, (b) ctrl-C, (a) kill -9 at about half. Nothing is lost, and at most one batch comes twice.
func TestStoppedReplaysFromPostgres(t *testing.T) {
	t.Parallel()
	n := 120
	if soak() {
		n = 1000
	}
	p := postgresPlace(t)
	large(t, p, n)
	command := func(args ...string) []string {
		return append(append([]string{"replay", "--all", "--yes", "--reservation", "3s"}, p.args...), args...)
	}
	if r := call(t, command("--to", "nowhere")...); r.code != cli.Failure || count(t, p.Set, dlq.StateDead) != n {
		t.Fatalf("missing target: code %d, %d dead\n%s", r.code, count(t, p.Set, dlq.StateDead), r.err)
	}
	for _, stop := range []struct {
		signal syscall.Signal
		at     int
		code   int
	}{{syscall.SIGINT, n / 4, int(cli.Interrupted)}, {syscall.SIGKILL, n / 2, -1}} {
		cmd, errs := spawn(t, command("--rate", "60")...)
		eventually.True(t, "it is on its way", func() bool { return count(t, p.Set, dlq.StateReplayed) >= stop.at })
		if err := cmd.Process.Signal(stop.signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != stop.code {
			t.Fatalf("after %s: %v\n%s", stop.signal, err, errs)
		}
	}
	eventually.True(t, "all are replayed", func() bool {
		r := call(t, command()...)
		return r.code == cli.OK && count(t, p.Set, dlq.StateDead) == 0
	})
	doubled := 0
	found := inQueue(t, p)
	for i := range n {
		switch found[soakID(i)] {
		case 1:
		case 2:
			doubled++
		default:
			t.Errorf("job %s was published %d times", soakID(i), found[soakID(i)])
		}
	}
	if doubled > 6 {
		t.Errorf("%d were doubled, more than one batch of 6", doubled)
	}
}

// throttled refuses every seventh message.
type throttled struct {
	queue.Broker
	seen atomic.Int64
	off  atomic.Bool
}

func (b *throttled) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	for i, p := range pubs {
		if !b.off.Load() && b.seen.Add(1)%7 == 0 {
			results[i].Err = fmt.Errorf("throttled: %w", queue.ErrUnavailable)
			continue
		}
		results[i] = b.Broker.Publish(ctx, name, []queue.Publication{p})[0]
	}
	return results
}

// Field case G4 (d) on PostgreSQL: every seventh message is throttled. Those stay dead, and the same command sends them.
func TestThrottledReplayFromPostgres(t *testing.T) {
	t.Parallel()
	n := 70
	if soak() {
		n = 1000
	}
	p := postgresPlace(t)
	large(t, p, n)
	slow := &throttled{}
	replay := func() result {
		var out, errs strings.Builder
		tool := newTool(&cli.Program{Name: standalone, IO: cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}}, standalone)
		tool.openBackends = func(ctx context.Context, cfg *config.Config, mode backends.Mode) (*backends.Set, error) {
			s, err := backends.OpenSoon(ctx, cfg, mode)
			if err == nil {
				slow.Broker = s.Broker
				s.Broker = slow
			}
			return s, err
		}
		code := tool.run(t.Context(), append([]string{"replay", "--all", "--yes"}, p.args...))
		return result{code, out.String(), errs.String()}
	}
	r := replay()
	if r.code != cli.Partial || count(t, p.Set, dlq.StateDead) != n/7 || !strings.Contains(r.err, "throttled") {
		t.Errorf("code %d, %d dead, want %d\n%s%s", r.code, count(t, p.Set, dlq.StateDead), n/7, r.out, r.err)
	}
	slow.off.Store(true)
	ok(t, replay())
	found := inQueue(t, p)
	for i := range n {
		if found[soakID(i)] != 1 {
			t.Errorf("job %s was published %d times", soakID(i), found[soakID(i)])
		}
	}
}

// Field case G3 on PostgreSQL: each job goes back to its own queue, what has no origin stays with a clear message, and foreign headers live on.
func TestReplayFromPostgresGoesToOwnQueues(t *testing.T) {
	t.Parallel()
	p := postgresPlace(t)
	for i := range 6 {
		seed(t, p.Set, letter(t, fmt.Sprintf("own%d", i), fmt.Sprintf("q%d", i%2), "work", []byte("x"), func(e *dlq.Entry) {
			e.Message.Headers["reply-to"] = "elsewhere \xff\x00"
		}))
	}
	foreign := dlq.Entry{
		Job: "foreign", State: dlq.StateDead, Cause: dlq.CauseUndecodable, Error: "message has no envelope",
		Message: queue.Message{Body: []byte("hello \x00\xff"), Headers: map[string]string{"x": "y"}},
	}
	if err := errors.Join(p.Letters.Put(t.Context(), []dlq.Entry{foreign})...); err != nil {
		t.Fatal(err)
	}
	r := call(t, append([]string{"replay", "--all", "--yes"}, p.args...)...)
	if r.code != cli.Partial || r.out != "replayed 6 of 7, 1 refused\n" || !strings.Contains(r.err, "foreign.0: the queue that it came from is unknown") {
		t.Errorf("code %d\n%s%s", r.code, r.out, r.err)
	}
	for i := range 2 {
		for _, m := range drain(t, p.Set, fmt.Sprintf("q%d", i)) {
			if e, err := m.Envelope(); err != nil || m.Headers["reply-to"] != "elsewhere \xff\x00" || int(e.ID[3]-'0')%2 != i {
				t.Errorf("q%d got %+v, %v", i, m, err)
			}
		}
	}
	if out := ok(t, call(t, append([]string{"show", "foreign.0", "--payload-only"}, p.args...)...)); out != "hello \x00\xff" {
		t.Errorf("payload %q", out)
	}
}
