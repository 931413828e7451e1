package queuecmd

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue/inspect"
)

// pruneWait is longer than RabbitMQ takes, after a restart of a node, to repeat what it moves from a delay to its queue: 3 min.
const pruneWait = 200 * time.Second

func (p *program) pruneCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove queues that nobody needs any more, once they are empty",
		Long: `Removes the delay queues that an older version made in RabbitMQ and this one does not use. Run it when no older version is running any more.
A queue with messages in it stays: they go where they belong in time, so repeat the command later. It waits before it removes the empty ones,
because a message whose delay has just ended is in no count until the broker has moved it. Exits 4 if something stays.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.prune(cmd, wait) },
	}
	cmd.Flags().DurationVar(&wait, "wait", pruneWait, "how long a queue must have been empty")
	return cmd
}

// pruned is the JSON form of what was found.
type pruned struct {
	Queues []inspect.Leftover `json:"queues"`
}

func (p *program) prune(cmd *cobra.Command, wait time.Duration) (err error) {
	if wait < 0 {
		return cli.Fail(cli.Usage, fmt.Errorf("--wait %v: must not be negative", wait))
	}
	cfg, s, err := backends.OpenFor(cmd, p.Program, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found := []inspect.Leftover{}
	if pruner, ok := s.Broker.(inspect.Pruner); ok {
		if found, err = pruner.Prune(cmd.Context(), wait); err != nil {
			return err
		}
	}
	if err := p.printPruned(p.IO.Out, cfg, found); err != nil {
		return err
	}
	for _, q := range found {
		if !q.Removed {
			return cli.Fail(cli.Partial, fmt.Errorf("queue %q stays, with %d messages: repeat the command later", q.Name, q.Messages))
		}
	}
	return nil
}

func (p *program) printPruned(out io.Writer, cfg *config.Config, found []inspect.Leftover) error {
	if p.Settings.JSON {
		return cli.JSON(out, pruned{Queues: append([]inspect.Leftover{}, found...)})
	}
	if len(found) == 0 {
		_, err := fmt.Fprintf(out, "nothing to remove: the %s broker has no queues that nobody needs\n", cfg.Broker)
		return err
	}
	rows := make([][]string, len(found))
	for i, q := range found {
		state := "kept"
		if q.Removed {
			state = "removed"
		}
		rows[i] = []string{q.Name, fmt.Sprint(q.Messages), state}
	}
	return cli.Table(out, []string{"QUEUE", "MESSAGES", "STATE"}, rows)
}
