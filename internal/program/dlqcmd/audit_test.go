package dlqcmd

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// audits returns the records that audit prints, newest first.
func audits(t *testing.T, db string) []audit.Record {
	t.Helper()
	var page auditList
	if err := json.Unmarshal([]byte(ok(t, call(t, "audit", "--json", "--db", db))), &page); err != nil {
		t.Fatal(err)
	}
	return page.Audits
}

func TestAudit(t *testing.T) {
	t.Parallel()
	db := three(t)
	dir := t.TempDir()
	if got := audits(t, db); len(got) != 0 {
		t.Fatalf("at the start: %+v", got)
	}
	file := filepath.Join(dir, "out.jsonl")
	ok(t, call(t, "replay", "--kind", "email.send", "--dry-run", "--db", db))
	ok(t, call(t, "export", "--output", file, "--db", db))
	ok(t, call(t, "import", "--all", "--from", file, "--yes", "--db", db))
	ok(t, call(t, "purge", "--id", "c.0", "--yes", "--db", db))
	call(t, "replay", "--kind", "email.send", "--to", "nowhere", "--yes", "--db", db)
	ok(t, call(t, "replay", "--kind", "email.send", "--yes", "--db", db))
	want := []struct {
		action  string
		state   audit.State
		planned int
		done    int
		failed  int
		filter  string
	}{
		{"replay", audit.StateDone, 2, 2, 0, `{"kind":"email.send"}`},
		{"replay", audit.StateFailed, 2, 0, 2, `{"kind":"email.send"}`},
		{"purge", audit.StateDone, 1, 1, 0, `{"ids":["c.0"]}`},
		{"import", audit.StateDone, 0, 3, 0, "all"},
		{"export", audit.StateDone, 0, 3, 0, "all"},
	}
	got := audits(t, db)
	if len(got) != len(want) {
		t.Fatalf("%d records: %+v", len(got), got)
	}
	for i, w := range want {
		a := got[i]
		if a.Action != w.action || a.State != w.state || a.Planned != w.planned || a.Done != w.done || a.Failed != w.failed || a.Filter != w.filter ||
			!strings.Contains(a.Actor, "@") || a.StartedAt.IsZero() || a.EndedAt.IsZero() || (a.Problem != "") != (w.state == audit.StateFailed) {
			t.Errorf("record %d: %+v, want %+v", i, a, w)
		}
	}
	e, err := open(t, db).Letters.Get(t.Context(), "a.0")
	if err != nil || e.ClosedBy != got[0].ID {
		t.Errorf("a.0 was closed by %q, %v; want %q", e.ClosedBy, err, got[0].ID)
	}
	if out := ok(t, call(t, "audit", "--limit", "2", "--db", db)); strings.Count(out, "\n") != 3 || !strings.Contains(out, "queue not found") {
		t.Errorf("printed:\n%s", out)
	}
}

// A killed replay stays in the log, as one that runs until its silence shows that it was interrupted, with what it had done.
func TestKilledReplayStaysInTheLog(t *testing.T) {
	t.Parallel()
	path, s := many(t, 150)
	cmd, _ := spawn(t, "replay", "--all", "--yes", "--rate", "20", "--db", path)
	eventually.True(t, "it says how far it came", func() bool {
		list := audits(t, path)
		return len(list) == 1 && list[0].Done > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	list := audits(t, path)
	if a := list[0]; a.State != audit.StateRunning || a.Planned != 150 || a.Done < 1 || a.Done > count(t, s, dlq.StateReplayed) {
		t.Errorf("record %+v", a)
	}
	if a := list[0].At(list[0].UpdatedAt.Add(2 * audit.DefaultSilence)); a.State != audit.StateInterrupted {
		t.Errorf("after its silence: %+v", a)
	}
}
