package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/stack"
)

func main() {
	cli.Main(func(ctx context.Context) cli.Code { return run(ctx, os.Args[1:], cli.System()) })
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, streams cli.IO) cli.Code {
	t := &tool{io: streams, openStack: stack.OpenSoon}
	return t.run(ctx, args)
}

func (t *tool) run(ctx context.Context, args []string) cli.Code {
	return cli.Run(ctx, t.root(), args, t.io) //nolint:contextcheck // commands take the context that cobra hands them
}

// tool is one run of the command line.
type tool struct {
	io       cli.IO
	settings cli.Settings
	store    string // file of --store
	// openStack opens what a configuration names.
	openStack func(ctx context.Context, cfg *config.Config, mode stack.Mode) (*stack.Stack, error)
}

func (t *tool) root() *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   "dlq-replay",
		Short: "Find, understand and replay dead letters",
		Long: `Finds, follows, shows, replays, purges, exports and imports dead letters: jobs that were given up.

It reads the worker's configuration: the file (--config or CAISSON_CONFIG), CAISSON_* variables and flags. Where dead letters live in the
broker's own queues, they can be looked at and searched only by receiving them: for a moment nobody else gets them, and list, show,
groups, export and dry runs see at most the first 10,000. import moves them to a file, and --store has the other commands work on that.

Replays, purges, imports and exports are recorded where dead letters live in a store: see audit.

` + cli.ExitCodes,
	}, t.listCommand(), t.showCommand(), t.groupsCommand(), t.replayCommand(), t.purgeCommand(), t.exportCommand(), t.importCommand(),
		t.watchCommand(), t.auditCommand())
	t.settings.Register(root)
	root.PersistentFlags().StringVar(&t.store, "store", "", "work on the dead letters in this `file` instead of the configured ones; import makes it")
	return root
}
