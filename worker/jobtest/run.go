package jobtest

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// Work runs the next delivery to its settlement and returns how it ended. If none is due yet, time passes until one is; jobs that are
// already running go on meanwhile. It fails the test if the queues are empty.
func (b *Bench) Work() worker.Settled {
	b.t.Helper()
	synctest.Wait()
	next, ok := b.next()
	if !ok {
		b.t.Fatalf("jobtest: Work: nothing waits in the queues%s; enqueued so far: %s", b.runningText(), b.ledger.summary())
	}
	if d := time.Until(next.due); d > b.cfg.MaxWait {
		b.t.Fatalf("jobtest: Work: the next job is %s: due in %s, longer than Config.MaxWait of %s", b.Where(next.job), d, b.cfg.MaxWait)
	}
	seen := b.ledger.settledCount()
	busy := b.busy()
	b.stepper.admit(next.queue)
	defer b.stepper.shut()
	maxWait := time.After(b.cfg.MaxWait)
	for {
		changed := b.ledger.changes()
		for _, s := range b.ledger.settledFrom(seen) {
			seen++
			if i := slices.Index(busy, idOf(&s)); i >= 0 {
				busy = slices.Delete(busy, i, i+1) // one of those that ran before
				continue
			}
			synctest.Wait()
			return s
		}
		select {
		case <-changed:
		case <-maxWait:
			b.t.Fatalf("jobtest: Work: no delivery was settled within %s; left are:\n%s", b.cfg.MaxWait, b.left())
		}
	}
}

// next is the message that comes next.
func (b *Bench) next() (message, bool) {
	waiting := b.ledger.waiting()
	if len(waiting) == 0 {
		return message{}, false
	}
	return waiting[0], true
}

// busy returns the jobs of the deliveries that are under way.
func (b *Bench) busy() (jobs []string) {
	for _, m := range b.ledger.running() {
		jobs = append(jobs, m.job)
	}
	return jobs
}

func idOf(s *worker.Settled) string {
	if s.Job == nil {
		return ""
	}
	return s.Job.ID
}

// Advance lets virtual time pass by d. What is due, or becomes due meanwhile, runs. Advance(0) starts what can run now.
func (b *Bench) Advance(d time.Duration) {
	b.stepper.openAll()
	time.Sleep(d)
	synctest.Wait()
	b.stepper.shut()
	synctest.Wait()
}

// Drain lets time pass until the queues are empty: every job is done, dead or held. It fails the test if that takes longer than
// Config.MaxWait, for example since a job is deferred for ever.
func (b *Bench) Drain() {
	b.t.Helper()
	b.stepper.openAll()
	defer b.stepper.shut()
	maxWait := time.After(b.cfg.MaxWait)
	for {
		changed := b.ledger.changes()
		synctest.Wait()
		if len(b.ledger.waiting())+len(b.ledger.running()) == 0 {
			return
		}
		select {
		case <-changed:
		case <-maxWait:
			b.t.Fatalf("jobtest: Drain: the queues are not empty after %s; left are:\n%s", b.cfg.MaxWait, b.left())
		}
	}
}

func (b *Bench) runningText() string {
	if n := len(b.ledger.running()); n > 0 {
		return fmt.Sprintf(" (%d jobs are running: let time pass with Advance)", n)
	}
	return ""
}

// left describes up to ten messages that are still there.
func (b *Bench) left() string {
	var lines []string
	for _, m := range append(b.ledger.running(), b.ledger.waiting()...) {
		if len(lines) == 10 {
			lines = append(lines, "and more")
			break
		}
		lines = append(lines, b.describe(m))
	}
	return "  " + strings.Join(lines, "\n  ")
}
