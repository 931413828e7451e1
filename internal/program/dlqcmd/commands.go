package dlqcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
)

// standalone is the program that has these commands and no others.
const standalone = "dlq-replay"

// Run runs one command line of dlq-replay and returns the exit code.
func Run(ctx context.Context, args []string, streams cli.IO) cli.Code {
	return newTool(&cli.Program{Name: standalone, IO: streams}, standalone).run(ctx, args)
}

// Command returns the command dlq of a program, which has the same commands.
func Command(p *cli.Program) *cobra.Command {
	t := newTool(p, caller(p.Name+" dlq"))
	return t.group(&cobra.Command{Use: "dlq", Long: long})
}

// tool is one run of the command line.
type tool struct {
	*cli.Program
	call  caller
	store string // file of --store
	// openBackends opens what a configuration names.
	openBackends func(ctx context.Context, cfg *config.Config, mode backends.Mode) (*backends.Set, error)
}

func newTool(p *cli.Program, call caller) *tool {
	return &tool{Program: p, call: call, openBackends: backends.OpenSoon}
}

func (t *tool) run(ctx context.Context, args []string) cli.Code {
	root := t.group(&cobra.Command{Use: t.Name, Long: long + "\n\n" + cli.ExitCodes}) //nolint:contextcheck // as below
	t.Settings.Register(root)
	return cli.Run(ctx, root, args, t.IO) //nolint:contextcheck // commands take the context that cobra hands them
}

// group adds the commands to cmd.
func (t *tool) group(cmd *cobra.Command) *cobra.Command {
	cmd.Short = "Find, understand and replay dead letters"
	cmd = cli.Group(cmd, t.listCommand(), t.showCommand(), t.groupsCommand(), t.replayCommand(), t.purgeCommand(), t.exportCommand(), t.importCommand(),
		t.watchCommand(), t.auditCommand())
	cmd.PersistentFlags().StringVar(&t.store, "store", "", "work on the dead letters in this `file` instead of the configured ones; import makes it")
	return cmd
}

const long = `Finds, follows, shows, replays, purges, exports and imports dead letters: jobs that were given up.

It reads the worker's configuration: the file (--config or CAISSON_CONFIG), CAISSON_* variables and flags. Where dead letters live in the
broker's own queues, they can be looked at and searched only by receiving them: for a moment nobody else gets them, and list, show,
groups, export and dry runs see at most the first 10,000. import moves them to a file, and --store has the other commands work on that.

Replays, purges, imports and exports are recorded where dead letters live in a store: see audit.`

// caller is what the commands are called by: dlq-replay, or worker dlq.
type caller string

// needsStore refuses what a broker cannot do.
func (c caller) needsStore(what string) error {
	return cli.Refuse("%s needs a dead-letter store, and dead letters live in the broker here: move them with %s import --store FILE, "+
		"then give --store FILE to this command", what, c)
}
