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
	"github.com/caisson-go/caisson/internal/program/runtime"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor [NAME...]", Short: "Say what is wrong with queues: their properties, their limits, stuck messages",
		Long: `Judges queues, by default those that the configuration names: whether their properties and those of what stands around them fit what the
jobs of this program's kinds need, and whether messages are stuck somewhere. It changes nothing.

A note is in order but good to know, a warning will hurt under load or after a fault, a fault loses, blocks or doubles jobs. Exits 1 if there
is a fault, or if a queue could not be looked at; notes and warnings alone exit 0. Workers log the same at their start.`,
		Args: cli.Args(cobra.ArbitraryArgs),
		RunE: p.doctor,
	}
}

// diagnosis is the JSON form of what was found.
type diagnosis struct {
	// Inspected says that the broker can be asked; the embedded one has nothing to ask for.
	Inspected bool              `json:"inspected"`
	Findings  []inspect.Finding `json:"findings"`
}

func (p *program) doctor(cmd *cobra.Command, names []string) (err error) {
	cfg, s, err := backends.OpenFor(cmd, p.Program, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if len(names) == 0 {
		for _, q := range cfg.Queues {
			names = append(names, q.Name)
		}
	}
	d, looking := diagnose(cmd.Context(), s.Broker, names, func() inspect.Use { return p.use(cmd.Context(), cfg) })
	if err := errors.Join(p.print(d, cfg, names), looking); err != nil {
		return err
	}
	if d.faulty() {
		return cli.Fail(cli.Failure, nil) // the findings have said why
	}
	return nil
}

// diagnose looks at each queue. The error tells which could not be looked at; what was found in the others is there all the same.
func diagnose(ctx context.Context, broker queue.Broker, names []string, use func() inspect.Use) (diagnosis, error) {
	d := diagnosis{Findings: []inspect.Finding{}}
	inspector, ok := broker.(inspect.Inspector)
	if !ok {
		return d, nil
	}
	d.Inspected = true
	needs := use()
	var failed []error
	for _, name := range names {
		found, err := inspector.Inspect(ctx, name, needs)
		if err != nil {
			failed = append(failed, fmt.Errorf("queue %q could not be looked at: %w", name, err))
		}
		d.Findings = append(d.Findings, found...)
	}
	return d, errors.Join(failed...)
}

func (d diagnosis) faulty() bool {
	return slices.ContainsFunc(d.Findings, func(f inspect.Finding) bool { return f.Severity == inspect.SeverityFault })
}

// use tells what the kinds of this program need. Where they cannot be had, the queues are judged without.
func (p *program) use(ctx context.Context, cfg *config.Config) inspect.Use {
	use, err := runtime.Use(ctx, runtime.Config{Settings: cfg, Setup: p.setup})
	if err != nil {
		fmt.Fprintf(p.IO.Err, "%s: judged without the kinds of jobs: %s\n", p.Name, cli.Lines(err.Error()))
	}
	return use
}

func (p *program) print(d diagnosis, cfg *config.Config, names []string) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, d)
	}
	switch {
	case !d.Inspected:
		fmt.Fprintf(p.IO.Out, "nothing to inspect: the %s broker keeps its queues as they have to be\n", cfg.Broker)
		return nil
	case len(d.Findings) == 0:
		fmt.Fprintf(p.IO.Out, "nothing found in %s\n", strings.Join(names, ", "))
		return nil
	}
	rows := make([][]string, len(d.Findings))
	for i, f := range d.Findings {
		rows[i] = []string{f.Queue, string(f.Severity), f.What, cli.OrDash(f.Remedy)}
	}
	return cli.Table(p.IO.Out, []string{"QUEUE", "SEVERITY", "WHAT", "REMEDY"}, rows)
}
