package sqs

import (
	"context"
	"sync"
	"time"
)

// callerIdleTimeout is how long a goroutine waits for its next call.
const callerIdleTimeout = time.Second

// callers makes calls to SQS in goroutines that are kept: the SDK needs a deep stack, which a new goroutine would grow by copying it, for each
// request anew.
type callers struct {
	life  context.Context // no goroutine waits for calls beyond it
	calls chan func()
	wg    sync.WaitGroup
}

func newCallers(life context.Context) *callers {
	return &callers{life: life, calls: make(chan func())}
}

// run makes call in a goroutine, and has whoever waits for wg wait for it.
func (c *callers) run(wg *sync.WaitGroup, call func()) {
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

func (c *callers) serve(work func()) {
	idle := time.NewTimer(callerIdleTimeout)
	defer idle.Stop()
	for {
		work()
		idle.Reset(callerIdleTimeout)
		select {
		case work = <-c.calls:
		case <-idle.C:
			return
		case <-c.life.Done():
			return
		}
	}
}

// wait joins the goroutines, after life is over and nothing is run any more.
func (c *callers) wait() { c.wg.Wait() }
