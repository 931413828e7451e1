package dlqcmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq/replay"
)

// progress says on standard error how far a replay came: a line now and then, or on a terminal one line that is written over.
type progress struct {
	tool *tool
	verb string
	// every is the time between two lines, and over says that one takes the place of the other.
	every time.Duration
	over  bool
	// began is when the first batch was done, and first how many that were: the estimate is made from what followed.
	began time.Time
	first int
	last  time.Time // of the last line
}

func (t *tool) newProgress(plan replay.Config) *progress {
	p := &progress{tool: t, verb: "replaying", every: 2 * time.Second, over: t.IO.Watched(), last: time.Now()}
	if plan.DryRun {
		p.verb = "looking"
	}
	if p.over {
		p.every, p.last = 100*time.Millisecond, time.Time{} // the first at once
	}
	return p
}

// show is called after each batch.
func (p *progress) show(r replay.Report) {
	done := r.Replayed + r.Failed + r.Refused + r.Completed
	if p.began.IsZero() {
		p.began, p.first = time.Now(), done
	}
	if time.Since(p.last) < p.every {
		return
	}
	p.last = time.Now()
	line := strings.Join(append([]string{fmt.Sprintf("%d of %d done", done, r.Matched)}, p.notes(r, done)...), ", ")
	if p.over {
		fmt.Fprintf(p.tool.IO.Err, "\r%s: %s%s", p.verb, line, clearLine)
		return
	}
	fmt.Fprintln(p.tool.IO.Err, line)
}

// notes are what stands beside the number of jobs that are done.
func (p *progress) notes(r replay.Report, done int) (notes []string) {
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

// end takes the line away that was written over.
func (p *progress) end() {
	if p.over {
		fmt.Fprint(p.tool.IO.Err, "\r"+clearLine)
	}
}
