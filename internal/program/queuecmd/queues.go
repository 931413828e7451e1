package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// Command returns the command queues. setup registers the program's kinds, whose needs the doctor knows by it.
func Command(p *cli.Program, setup func(*worker.Registry) error) *cobra.Command {
	return (&program{p, setup}).queuesCommand()
}

// program is what the commands share.
type program struct {
	*cli.Program
	setup func(*worker.Registry) error
}

func (p *program) queuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "List queues and their depth, create queues, look for what is wrong with them, remove what nobody needs",
		Long: `Lists the queues and how many messages each holds: ready to be received, delayed until later, and in flight at some worker. A number that
the broker cannot know is shown as unknown, and is null in JSON. Networked brokers have a dead-letter queue beside each queue, with .dlq at
the end of its name. RabbitMQ lists queues of others only where rabbitmq.management is set; else those that the configuration names.`,
	}
	list := &cobra.Command{
		Use: "list", Short: "List queues and their depth; the same as queues alone",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listQueues(cmd) },
	}
	create := &cobra.Command{
		Use: "create NAME...", Short: "Create queues with all that belongs to them; those that exist are left as they are",
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: p.createQueues,
	}
	cli.Group(cmd, list, create, p.doctorCommand(), p.pruneCommand())
	unknown := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(cmd, args)
		}
		return p.listQueues(cmd)
	}
	return cmd
}

// queueList is the JSON form of the list.
type queueList struct {
	Queues []queueRow `json:"queues"`
}

type queueRow struct {
	Name     string      `json:"name"`
	Ready    queue.Count `json:"ready"`
	Delayed  queue.Count `json:"delayed"`
	InFlight queue.Count `json:"in_flight"`
}

func (p *program) listQueues(cmd *cobra.Command) (err error) {
	cfg, s, err := backends.OpenFor(cmd, p.Program, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := findQueues(cmd.Context(), cfg, s.Broker)
	if err != nil {
		return err
	}
	list := queueList{Queues: make([]queueRow, len(found))}
	rows := make([][]string, len(found))
	for i, q := range found {
		list.Queues[i] = queueRow{q.Name, q.Depth.Ready, q.Depth.Delayed, q.Depth.InFlight}
		rows[i] = []string{q.Name, q.Depth.Ready.String(), q.Depth.Delayed.String(), q.Depth.InFlight.String()}
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, list)
	}
	return cli.Table(p.IO.Out, []string{"QUEUE", "READY", "DELAYED", "IN FLIGHT"}, rows)
}

// findQueues lists the queues that the broker can see, and those that the configuration names: some brokers list none without help.
func findQueues(ctx context.Context, cfg *config.Config, broker queue.Broker) ([]queue.QueueInfo, error) {
	found, err := broker.Queues(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) || !cfg.Networked() {
		return found, err
	}
	for _, q := range cfg.Queues {
		for _, name := range []string{q.Name, queue.DLQ(q.Name)} {
			if slices.ContainsFunc(found, func(i queue.QueueInfo) bool { return i.Name == name }) {
				continue
			}
			d, err := broker.Depth(ctx, name)
			if errors.Is(err, queue.ErrQueueNotFound) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("depth of queue %q: %w", name, err)
			}
			found = append(found, queue.QueueInfo{Name: name, Depth: d})
		}
	}
	slices.SortFunc(found, func(a, b queue.QueueInfo) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func (p *program) createQueues(cmd *cobra.Command, names []string) (err error) {
	for _, name := range names { // before a file is made
		if err := config.CheckQueueName(name); err != nil {
			return cli.Fail(cli.Usage, err)
		}
	}
	cfg, s, err := backends.OpenFor(cmd, p.Program, backends.Create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, name := range names {
		if err := cfg.CheckQueueName(name); err != nil {
			return cli.Fail(cli.Usage, err)
		}
	}
	for i, name := range names {
		if err := s.Broker.CreateQueue(cmd.Context(), name); err != nil {
			if i > 0 {
				return cli.Fail(cli.Partial, err)
			}
			return err
		}
		if !p.Settings.JSON {
			fmt.Fprintln(p.IO.Out, name)
		}
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, map[string][]string{"created": names})
	}
	return nil
}
