package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/cli"
)

func (t *tool) purgeCommand() *cobra.Command {
	var f filterFlags
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Give entries up for good: their payloads are deleted",
		Long: `Marks the selected entries as purged and deletes their payloads and headers, for good. The rest of each entry stays until its retention
is over, so that a late redelivery cannot bring the job back. Entries that a replay is just publishing are passed over.`,
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
}

func (t *tool) purge(cmd *cobra.Command, f dlq.Filter, yes, dryRun bool) (err error) {
	s, err := t.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	result := purgeResult{DryRun: dryRun}
	if result.Matched, err = s.DeadLetters.Count(cmd.Context(), f); err != nil {
		return err
	}
	if result.Matched > 0 && !dryRun {
		if err := t.confirm(cmd.Context(), yes, fmt.Sprintf("Purge %d entries? Their payloads are deleted for good.", result.Matched)); err != nil {
			return err
		}
		if result.Purged, err = s.DeadLetters.Purge(cmd.Context(), f); err != nil {
			return err
		}
	}
	switch {
	case t.settings.JSON:
		return cli.JSON(t.io.Out, result)
	case dryRun:
		fmt.Fprintf(t.io.Out, "would purge %d entries\n", result.Matched)
	default:
		fmt.Fprintf(t.io.Out, "purged %d entries\n", result.Purged)
	}
	return nil
}
