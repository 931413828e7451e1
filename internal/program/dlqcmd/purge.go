package dlqcmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

func (t *tool) purgeCommand() *cobra.Command {
	var f filterFlags
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Give entries up for good: their payloads are deleted",
		Long: `Marks the selected entries as purged and deletes their payloads and headers, for good. The rest of each entry stays until its retention
is over, so that a late redelivery cannot bring the job back. Entries that a replay is just publishing are passed over. In the broker's own
queues nothing stays of them.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.chosen(time.Now())
			if err != nil {
				return err
			}
			return t.purge(cmd, filter, yes, dryRun)
		},
	}
	f.register(cmd)
	f.registerAll(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count")
	return cmd
}

// purgeResult is the JSON form of a purge.
type purgeResult struct {
	DryRun bool `json:"dry_run"`
	// Matched entries were there before, Purged ones have lost their messages.
	Matched int `json:"matched"`
	Purged  int `json:"purged"`
	// Pass and Sample are there for the broker's own queues.
	*brokerdlq.ScanReport
	Sample *sample `json:"sample,omitempty"`
}

func (t *tool) purge(cmd *cobra.Command, f dlq.Filter, yes, dryRun bool) (err error) {
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := cmd.Context()
	defer func() { err = errors.Join(err, s.unknown(ctx, f)) }()
	what, until, err := s.letters.scope(ctx, f)
	if err != nil {
		return err
	}
	if what != "" && !dryRun {
		if err := t.confirm(ctx, yes, "Purge "+what+"? Their payloads are deleted for good."); err != nil {
			return err
		}
	}
	result, err := s.letters.purge(ctx, f, until, dryRun)
	if err := t.printPurge(result); err != nil {
		return err
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted: %d entries were purged", result.Purged))
	case err != nil && result.Purged > 0:
		return cli.Fail(cli.Partial, err)
	}
	return err
}

func (t *tool) printPurge(r purgeResult) error {
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, r)
	}
	text := "purged " + entriesText(r.Purged)
	if r.DryRun {
		text = "would purge " + entriesText(r.Matched)
		t.noteSample(r.Sample)
	}
	_, err := fmt.Fprintln(t.IO.Out, text)
	return err
}

func entriesText(n int) string { return fmt.Sprintf("%d entries", n) }
