package sqs

import (
	"context"
	"sync"
	"time"
)

// crewPatience is how long a goroutine of a crew waits for its next call.
const crewPatience = time.Second

// crew makes calls to SQS in goroutines that are kept: the SDK needs a deep stack, which a new goroutine would grow by copying it, for each
// request anew.
type crew struct {
	life  context.Context // no goroutine waits for calls beyond it
	calls chan func()
	wg    sync.WaitGroup
}

func newCrew(life context.Context) *crew {
	return &crew{life: life, calls: make(chan func())}
}

// run makes call in a goroutine, and has whoever waits for wg wait for it.
func (c *crew) run(wg *sync.WaitGroup, call func()) {
	wg.Add(1)
	work := func() {
		defer wg.Done()
		call()
	}
	select {
	case c.calls <- work:
	default: // nobody is idle
		c.wg.Go(func() { c.serve(work) })
	}
}

func (c *crew) serve(work func()) {
	patience := time.NewTimer(crewPatience)
	defer patience.Stop()
	for {
		work()
		patience.Reset(crewPatience)
		select {
		case work = <-c.calls:
		case <-patience.C:
			return
		case <-c.life.Done():
			return
		}
	}
}

// wait joins the goroutines, after life is over and nothing is run any more.
func (c *crew) wait() { c.wg.Wait() }
