package app

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/dlqcmd"
	"github.com/caisson-go/caisson/internal/program/endpointcmd"
	"github.com/caisson-go/caisson/internal/program/explain"
	"github.com/caisson-go/caisson/internal/program/jobcmd"
	"github.com/caisson-go/caisson/internal/program/queuecmd"
	"github.com/caisson-go/caisson/internal/program/runcmd"
	"github.com/caisson-go/caisson/internal/program/storecmd"
	"github.com/caisson-go/caisson/worker"
)

// IO is what a program reads from and writes to.
type IO struct {
	In io.Reader
	// Out gets results, Err everything else.
	Out, Err io.Writer
	// Env holds variables in the form of os.Environ. Nil means none.
	Env []string
}

// Main runs the command that os.Args names and exits the process with its code. setup registers the program's kinds; the
// commands that need them (run, config check and queues doctor) call it once. --help explains the exit codes.
func Main(setup func(*worker.Registry) error) {
	cli.Main(func(ctx context.Context) cli.Code {
		return cli.Code(Run(ctx, os.Args, IO(cli.System()), setup))
	})
}

// Run runs the command that args names and returns the exit code. args begins with the program's name, as os.Args does. The end of ctx is
// the first signal: a worker stops gracefully, any other command is interrupted. Run may be called several times, also at once.
func Run(ctx context.Context, args []string, streams IO, setup func(*worker.Registry) error) int {
	p := &cli.Program{Name: "worker", IO: cli.IO(streams)}
	if len(args) > 0 {
		p.Name = strings.TrimSuffix(filepath.Base(args[0]), ".exe")
		args = args[1:]
	}
	return int(cli.Run(ctx, root(p, setup), args, p.IO)) //nolint:contextcheck // commands take the context that cobra hands them
}

func root(p *cli.Program, setup func(*worker.Registry) error) *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   p.Name,
		Short: "Run jobs from durable queues, and look after them",
		Long: `Runs jobs from durable queues, and looks after them.

Without any configuration the queue is the file ./caisson.db, and jobs come from its queue "default".
Settings come from defaults, the file (--config or CAISSON_CONFIG), CAISSON_* variables and flags, each stronger than the one before.

` + cli.ExitCodes,
	}, slices.Concat(
		runcmd.Commands(p, setup), storecmd.Commands(p), endpointcmd.Commands(p),
		[]*cobra.Command{jobcmd.Command(p), queuecmd.Command(p, setup), explain.Command(p), dlqcmd.Command(p)},
	)...)
	p.Settings.Register(root)
	return root
}
