package dlqcmd

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// replayResult is the JSON form of a replay.
type replayResult struct {
	replay.Report
	// ScanReport is there for the broker's own queues.
	*brokerdlq.ScanReport
}

func (t *tool) printReport(r replayResult, plan replay.Config) error {
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, r)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(t.IO.Err, "%s: %s\n", cli.OneLine(p.ID), cli.OneLine(p.Error))
	}
	if hidden := r.Failed + r.Refused + r.Completed - len(r.Problems); hidden > 0 {
		fmt.Fprintf(t.IO.Err, "and %d more\n", hidden)
	}
	if r.DryRun {
		text := strings.Join(append([]string{"would replay " + targetsText(r.Report)}, leftOut(r.Report, plan)...), "; ")
		if r.ScanReport != nil && r.Incomplete {
			text += "; there are more dead letters in the broker than were looked at"
		}
		fmt.Fprintln(t.IO.Out, text)
		return nil
	}
	parts := []string{fmt.Sprintf("replayed %d of %d", r.Replayed, r.Matched)}
	rest := []part{
		{r.Completed, "completed meanwhile and left out"},
		{r.Forced, "of them run again by force"},
		{r.Failed, "not confirmed"},
		{r.Refused, "refused"},
		{r.Held, "held until their breakers close"},
		{r.Left, "left"},
	}
	if r.ScanReport != nil {
		rest = append(rest, part{r.PassedOver, "did not match"}, part{r.Later, "came meanwhile"}, part{r.Copies, "copies removed"})
	}
	for _, part := range rest {
		if part.n > 0 {
			parts = append(parts, part.String())
		}
	}
	if _, err := fmt.Fprintln(t.IO.Out, strings.Join(parts, ", ")); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

// part is a number of jobs, and what became of them.
type part struct {
	n    int
	what string
}

func (p part) String() string { return fmt.Sprintf("%d %s", p.n, p.what) }
