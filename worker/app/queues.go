package app

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/cli"
	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/internal/stack"
	"github.com/caisson-go/caisson/queue"
)

func (p *program) queuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "List queues and their depth, and create queues",
		Long: `Lists the queues and how many messages each holds: ready to be received, delayed until later, and in flight at some worker. A number that
the broker cannot know is shown as unknown, and is null in JSON.`,
	}
	list := &cobra.Command{
		Use: "list", Short: "List queues and their depth; the same as queues alone",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listQueues(cmd) },
	}
	create := &cobra.Command{
		Use: "create NAME...", Short: "Create queues; those that exist are left as they are",
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: p.createQueues,
	}
	cli.Group(cmd, list, create)
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
	s, err := p.open(cmd, stack.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := s.Broker.Queues(cmd.Context())
	if err != nil {
		return err
	}
	list := queueList{Queues: make([]queueRow, len(found))}
	rows := make([][]string, len(found))
	for i, q := range found {
		list.Queues[i] = queueRow{q.Name, q.Depth.Ready, q.Depth.Delayed, q.Depth.InFlight}
		rows[i] = []string{q.Name, q.Depth.Ready.String(), q.Depth.Delayed.String(), q.Depth.InFlight.String()}
	}
	if p.settings.JSON {
		return cli.JSON(p.io.Out, list)
	}
	return cli.Table(p.io.Out, []string{"QUEUE", "READY", "DELAYED", "IN FLIGHT"}, rows)
}

func (p *program) createQueues(cmd *cobra.Command, names []string) (err error) {
	for _, name := range names {
		if err := config.CheckQueueName(name); err != nil {
			return cli.Fail(cli.Usage, err)
		}
	}
	s, err := p.open(cmd, stack.Create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i, name := range names {
		if err := s.Broker.CreateQueue(cmd.Context(), name); err != nil {
			if i > 0 {
				return cli.Fail(cli.Partial, err)
			}
			return err
		}
		if !p.settings.JSON {
			fmt.Fprintln(p.io.Out, name)
		}
	}
	if p.settings.JSON {
		return cli.JSON(p.io.Out, map[string][]string{"created": names})
	}
	return nil
}

// open reads the configuration and opens what it names.
func (p *program) open(cmd *cobra.Command, mode stack.Mode) (*stack.Stack, error) {
	cfg, err := p.settings.Load(cmd, p.io)
	if err != nil {
		return nil, err
	}
	return stack.Open(cmd.Context(), cfg, mode)
}
