package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/cli"
	"github.com/caisson-go/caisson/internal/stack"
)

func main() {
	cli.Main(func(ctx context.Context) cli.Code { return run(ctx, os.Args[1:], cli.System()) })
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, streams cli.IO) cli.Code {
	t := &tool{io: streams}
	return cli.Run(ctx, t.root(), args, streams) //nolint:contextcheck // commands take the context that cobra hands them
}

// tool is one run of the command line.
type tool struct {
	io       cli.IO
	settings cli.Settings
}

func (t *tool) root() *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   "dlq-replay",
		Short: "Find, understand and replay dead letters",
		Long: `Finds, shows, replays, purges and exports dead letters: jobs that were given up.

It reads the worker's configuration: the file (--config or CAISSON_CONFIG), CAISSON_* variables and flags.

` + cli.ExitCodes,
	}, t.listCommand(), t.showCommand(), t.groupsCommand(), t.replayCommand(), t.purgeCommand(), t.exportCommand())
	t.settings.Register(root)
	return root
}

// open reads the configuration and opens what it names.
func (t *tool) open(cmd *cobra.Command) (*stack.Stack, error) {
	cfg, err := t.settings.Load(cmd, t.io)
	if err != nil {
		return nil, err
	}
	return stack.Open(cmd.Context(), cfg, stack.Existing)
}
