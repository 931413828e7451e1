package app_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/dlqcmd"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/worker"
)

// dlqReplay runs one command line of dlq-replay.
func dlqReplay(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	code := dlqcmd.Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	return result{int(code), out.String(), errs.String()}
}

// Every program has the commands of dlq-replay, which answer the same there but for their name.
func TestDLQCommandsOfAProgram(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	ok(t, call(t, strings.Repeat("{\"n\":1}\n", 3), nil, "enqueue", "bad", "-", "--lines", "--id", "job", "--db", db))
	r := start(t, func(reg *worker.Registry) error {
		worker.Handle(reg, worker.Kind[[]byte]{Name: "bad"}, dies)
		return nil
	}, "--db", db, "--admin-addr", "off")
	eventually.True(t, "all are dead", func() bool {
		return strings.Count(dlqReplay(t, "list", "--db", db).out, "\n") == 4
	})
	if code := r.end(); code != 0 {
		t.Fatalf("the worker's exit code %d", code)
	}
	for _, args := range [][]string{
		{"list"},
		{"list", "--json"},
		{"list", "--limit", "2"},
		{"list", "--after", "nonsense"},
		{"list", "--cause", "nonsense"},
		{"list", "--nonsense"},
		{"show", "job-1.0"},
		{"show", "job-1.0", "--json"},
		{"show", "job-1.0", "--payload-only"},
		{"show", "nothing"},
		{"show"},
		{"groups"},
		{"groups", "--json"},
		{"audit"},
		{"audit", "--json"},
		{"audit", "--limit", "0"},
		{"export"},
		{"export", "--id", "nothing"},
		{"list", "--store", filepath.Join(t.TempDir(), "none.db")},
		{"replay", "--all"},
		{"replay", "--all", "--dry-run"},
		{"purge", "--all", "--dry-run"},
		{"purge"},
		{"import", "--all", "--dry-run", "--json"},
		{"nonsense"},
	} {
		args = append(args, "--db", db)
		own, alone := call(t, "", nil, append([]string{"dlq"}, args...)...), dlqReplay(t, args...)
		alone.err = strings.ReplaceAll(strings.ReplaceAll(alone.err, "dlq-replay: ", "worker: "), "dlq-replay", "worker dlq")
		if own != alone {
			t.Errorf("%v: worker dlq exits %d and prints\n%s%s\ndlq-replay exits %d and prints\n%s%s", args, own.code, own.out, own.err, alone.code, alone.out, alone.err)
		}
	}
}

func dies(context.Context, []byte) error { return worker.Cancel(errors.New("card refused")) }
