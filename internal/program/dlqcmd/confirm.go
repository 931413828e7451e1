package dlqcmd

import (
	"context"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// confirm asks before something is changed. yes answers in advance; where nobody can be asked it is required.
func (t *tool) confirm(ctx context.Context, yes bool, question string) error {
	return cli.Confirm(ctx, t.IO, yes, question, "--dry-run")
}
