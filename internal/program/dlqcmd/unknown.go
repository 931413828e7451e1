package dlqcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// unknown says which of the ids that were given no entry has, whatever its state; nil if each has one. Where dead letters live in the broker
// nobody can tell without looking at all of them, and whoever was interrupted is not kept waiting for it.
func (s *session) unknown(ctx context.Context, f dlq.Filter) error {
	if s.store == nil || ctx.Err() != nil {
		return nil
	}
	known := make(map[string]bool, len(f.IDs))
	for chunk := range slices.Chunk(f.IDs, 500) {
		list, _, err := s.store.List(ctx, dlq.Filter{IDs: chunk, States: dlq.States()}, "", len(chunk))
		if err != nil {
			return err
		}
		for _, e := range list {
			known[e.ID] = true
		}
	}
	missing := slices.DeleteFunc(slices.Clone(f.IDs), func(id string) bool { return known[id] })
	if len(missing) == 0 {
		return nil
	}
	const shown = 5
	text := cli.OneLine(strings.Join(missing[:min(len(missing), shown)], ", "))
	if n := len(missing) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	code := cli.Partial
	if len(missing) == len(f.IDs) {
		code = cli.Failure
	}
	return cli.Fail(code, fmt.Errorf("--id: no entry has the id %s: see `%s list --state all`; --job takes the id of a job", text, s.call))
}
