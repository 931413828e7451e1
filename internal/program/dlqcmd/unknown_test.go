package dlqcmd

import (
	"strings"
	"testing"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// An id that no entry has is told, and what the others name is done. One that was done before is no mistake.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"export"}, {"replay", "--yes"}, {"purge", "--yes"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			db := three(t)
			ids := listed(t, db)
			with := func(id string) result {
				return call(t, append(command, "--id", id, "--db", db)...)
			}
			if r := with("nobody,no one"); r.code != cli.Failure || !strings.Contains(r.err, "no entry has the id nobody, no one") {
				t.Errorf("only unknown ones: exit code %d, %s", r.code, r.err)
			}
			if r := with(ids[0] + ",1,2,3,4,5,6,7"); r.code != cli.Partial || !strings.Contains(r.err, "no entry has the id 1, 2, 3, 4, 5 and 2 more") {
				t.Errorf("one of eight: exit code %d, %s", r.code, r.err)
			}
			if left := len(listed(t, db)); command[0] != "export" && left != 2 {
				t.Errorf("%d entries are left, want the two that were not named", left)
			}
			if r := with(ids[0]); r.code != cli.OK {
				t.Errorf("once more: exit code %d, %s", r.code, r.err)
			}
		})
	}
}
