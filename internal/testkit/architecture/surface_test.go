package architecture

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

func surfaceIsSmall(t *testing.T) {
	t.Helper()
	lines := map[string]int{}
	var names []string
	for _, p := range modulePackages(t) {
		switch top, _, _ := strings.Cut(p.Path, "/"); {
		case top == "internal", top == "cmd", top == "examples", strings.Contains(p.Path, "/internal/"):
		default:
			names = append(names, p.Path)
		}
	}
	counts := make([]int, len(names))
	var group errgroup.Group
	group.SetLimit(4)
	for i, name := range names {
		group.Go(func() error {
			cmd := exec.CommandContext(t.Context(), "go", "doc", "-short", "./"+name)
			cmd.Dir = root
			out, err := cmd.Output()
			counts[i] = bytes.Count(out, []byte{'\n'})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		lines[name] = counts[i]
	}
	for _, fault := range Oversized(public, lines) {
		t.Error(fault)
	}
}

func TestOversizedIsFound(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"worker": 150, "queue": 50, "gone": 3}
	want := []string{
		"helpers is public and not in architecture.public: put it below internal, or give it a row",
		"queue: go doc -short prints 51 lines, at most 50 may be",
		"worker: its limit of 150 is above 60",
		"gone has a row in architecture.public and does not exist",
		"[worker pools dlq webhook queue] together: go doc -short prints 191 lines, at most 190 may be",
	}
	if diff := cmp.Diff(want, Oversized(limits, map[string]int{"worker": 140, "queue": 51, "helpers": 1})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
