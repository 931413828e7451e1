package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/cli"
)

// replayResult is the JSON form of a replay. Queues and Destinations are there for a dry run.
type replayResult struct {
	dlq.Report
	Queues       map[string]int `json:"queues,omitempty"`
	Destinations map[string]int `json:"destinations,omitempty"`
}

func (t *tool) printReport(r dlq.Report, to targets) error {
	if t.settings.JSON {
		result := replayResult{Report: r}
		if r.DryRun {
			result.Queues, result.Destinations = to.Queues, to.Destinations
		}
		return cli.JSON(t.io.Out, result)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(t.io.Err, "%s: %s\n", cli.OneLine(p.ID), cli.OneLine(p.Error))
	}
	if hidden := r.Failed + r.Refused - len(r.Problems); hidden > 0 {
		fmt.Fprintf(t.io.Err, "and %d more\n", hidden)
	}
	if r.DryRun {
		text := "would replay " + to.String()
		if r.Refused > 0 {
			text += fmt.Sprintf("; %d of them would be refused", r.Refused)
		}
		fmt.Fprintln(t.io.Out, text)
		return nil
	}
	parts := []string{fmt.Sprintf("replayed %d of %d", r.Replayed, r.Matched)}
	for _, part := range []struct {
		n    int
		what string
	}{{r.Failed, "not confirmed"}, {r.Refused, "refused"}, {r.Left, "left"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if _, err := fmt.Fprintln(t.io.Out, strings.Join(parts, ", ")); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

// progress shows how far a replay came on standard error: a bar on a terminal, else a line now and then.
type progress struct {
	tool *tool
	bar  *progressbar.ProgressBar
	last time.Time // of the last line
}

// lineEvery is how often a line is printed where nobody watches a bar.
const lineEvery = 2 * time.Second

func (t *tool) newProgress(plan dlq.ReplayConfig) *progress {
	p := &progress{tool: t, last: time.Now()}
	if t.io.Watched() && !plan.DryRun {
		// Of unknown length, -1, the bar would turn a spinner in a goroutine that reads what drawing writes.
		p.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(t.io.Err), progressbar.OptionSetDescription("replaying"),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	return p
}

// show is called after each batch.
func (p *progress) show(r dlq.Report) {
	done := r.Replayed + r.Failed + r.Refused
	if p.bar != nil {
		p.bar.ChangeMax(max(r.Matched, 1))
		if c := r.Canary; c.Pending > 0 {
			p.bar.Describe(fmt.Sprintf("canary: %d done, %d died, %d pending", c.Completed, c.Died, c.Pending))
		} else {
			p.bar.Describe("replaying")
		}
		_ = p.bar.Set(min(done, r.Matched)) // a bar that cannot be drawn is no reason to stop
		return
	}
	if time.Since(p.last) < lineEvery {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.tool.io.Err, "%d of %d done, %d not confirmed, %d refused\n", done, r.Matched, r.Failed, r.Refused)
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
