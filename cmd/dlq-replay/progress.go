package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/caisson-go/caisson/dlq"
)

// progress shows how far a replay came on standard error: a bar on a terminal, else a line now and then.
type progress struct {
	tool *tool
	verb string
	bar  *progressbar.ProgressBar
	// began is when the first batch was done, and first how many that were: the estimate is made from what followed.
	began time.Time
	first int
	last  time.Time // of the last line
}

// lineEvery is how often a line is printed where nobody watches a bar.
const lineEvery = 2 * time.Second

func (t *tool) newProgress(plan dlq.ReplayConfig) *progress {
	p := &progress{tool: t, verb: "replaying", last: time.Now()}
	if plan.DryRun {
		p.verb = "looking"
	}
	if t.io.Watched() {
		// Of unknown length, -1, the bar would turn a spinner in a goroutine that reads what drawing writes.
		p.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(t.io.Err), progressbar.OptionSetDescription(p.verb),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	return p
}

// show is called after each batch.
func (p *progress) show(r dlq.Report) {
	done := r.Replayed + r.Failed + r.Refused + r.Completed
	if p.began.IsZero() {
		p.began, p.first = time.Now(), done
	}
	if p.bar != nil {
		p.bar.ChangeMax(max(r.Matched, 1))
		p.bar.Describe(strings.Join(append([]string{p.verb}, p.notes(r, done)...), ", "))
		_ = p.bar.Set(min(done, r.Matched)) // a bar that cannot be drawn is no reason to stop
		return
	}
	if time.Since(p.last) < lineEvery {
		return
	}
	p.last = time.Now()
	parts := append([]string{fmt.Sprintf("%d of %d done", done, r.Matched)}, p.notes(r, done)...)
	fmt.Fprintln(p.tool.io.Err, strings.Join(parts, ", "))
}

// notes are what stands beside the number of jobs that are done.
func (p *progress) notes(r dlq.Report, done int) (notes []string) {
	for _, part := range []part{
		{r.Failed, "not confirmed"}, {r.Refused, "refused"}, {r.Completed, "completed meanwhile"}, {r.Held, "held by breakers"},
	} {
		if part.n > 0 {
			notes = append(notes, part.String())
		}
	}
	if r.Unreported != "" {
		notes = append(notes, r.Unreported)
	}
	if c := r.Canary; c.Pending > 0 {
		return append(notes, fmt.Sprintf("canary: %d done, %d died, %d pending", c.Completed, c.Died, c.Pending))
	}
	if eta, ok := p.eta(done, r.Matched-r.Held); ok {
		notes = append(notes, eta.String()+" left")
	}
	return notes
}

// eta is about how long the rest takes at the pace so far. It is not known at the start, nor while jobs are held at the end.
func (p *progress) eta(done, all int) (time.Duration, bool) {
	spent := time.Since(p.began)
	if done <= p.first || done >= all || spent < time.Second {
		return 0, false
	}
	left := float64(all-done) / float64(done-p.first) * spent.Seconds()
	return time.Duration(min(left, longestETA.Seconds())) * time.Second, true
}

// longestETA bounds what is worth saying, and what a Duration can hold.
const longestETA = 1000 * time.Hour

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
