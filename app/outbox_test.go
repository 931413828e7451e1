package app_test

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/worker"
)

// What the broker refuses is counted, listed, tried again and deleted from the command line.
func TestOutboxCommands(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	file := filepath.Join(t.TempDir(), "q.db")
	tool := func(args ...string) result {
		return call(t, "", db.env, append([]string{"outbox"}, append(args, "--db", file)...)...)
	}
	if r := tool("status"); r.code != 5 || !strings.Contains(r.err, "migrate up") {
		t.Errorf("without tables: exit code %d\n%s", r.code, r.err)
	}
	ok(t, call(t, "", db.env, "migrate", "up"))
	for _, args := range [][]string{{"retry"}, {"retry", "--all", "1"}, {"retry", "one"}, {"discard"}, {"discard", "0", "--yes"}, {"discard", "1"}, {"refused", "--limit", "0"}} {
		if r := tool(args...); r.code != 2 || r.err == "" {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	for _, id := range []string{"one", "two"} {
		db.enqueue(t, worker.NewJob{Kind: "note", ID: id, Queue: "missing", Payload: []byte("p")})
	}
	if r := tool("status", "--json"); r.code != 0 || !strings.HasPrefix(r.out, `{"fresh":2,"waiting":0,"stuck":0,"oldest_seconds":`) {
		t.Errorf("status prints %q\n%s", r.out, r.err)
	}
	ok(t, call(t, "", nil, "queues", "create", "default", "--db", file))
	addr := freeAddr(t)
	relay := startCommand(t, db.env, nil, "relay", "--db", file, "--admin-addr", addr)
	var list struct {
		Refused []struct {
			Row        int64
			Job, Error string
			Attempts   int
		}
	}
	eventually.True(t, "both are refused", func() bool {
		r := tool("refused", "--json")
		return r.code == 0 && json.Unmarshal([]byte(r.out), &list) == nil && len(list.Refused) == 2
	})
	if first := list.Refused[0]; first.Job != "one" || first.Attempts < 1 || !strings.Contains(first.Error, "missing") {
		t.Errorf("listed as %+v", first)
	}
	if r := tool("refused"); r.code != 0 || !strings.Contains(r.out, "missing") {
		t.Errorf("refused prints\n%s%s", r.out, r.err)
	}
	row := strconv.FormatInt(list.Refused[0].Row, 10)
	if r := tool("discard", row, row, "987654321", "--yes"); r.code != 4 || r.out != "deleted 1 refused job\n" || !strings.Contains(r.err, "1 row not refused") {
		t.Errorf("discard: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	eventually.True(t, "the relay shows what it has before it", func() bool {
		_, metrics := probe(t, "http://"+addr+"/metrics")
		return strings.Contains(metrics, `caisson_outbox_pending_jobs{state="stuck"} 0`)
	})
	if code := relay.end(); code != 0 { // else it may be quicker than the next two
		t.Errorf("exit code %d\n%s", code, relay.log)
	}
	ok(t, call(t, "", nil, "queues", "create", "missing", "--db", file))
	if r := tool("retry", "--all"); r.code != 0 || !strings.Contains(r.out, "1 refused job will be tried again") {
		t.Errorf("retry: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	relay = startCommand(t, db.env, nil, "relay", "--db", file, "--admin-addr", "off")
	eventually.True(t, "the other is published", func() bool {
		r := tool("status")
		return r.code == 0 && strings.Contains(r.out, "\n0      0        0      -")
	})
	if code := relay.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, relay.log)
	}
}
