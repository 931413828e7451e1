package sqs

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// TestCallersKeepGoroutines: a call finds the goroutine of an earlier one, calls at once each have their own, and nothing is left when life ends.
func TestCallersKeepGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		c := newCallers(life)
		var calls, kept sync.WaitGroup
		for range 2 {
			gate := make(chan struct{})
			for range 3 {
				kept.Add(1)
				c.run(&calls, func() { <-gate; kept.Done() })
			}
			synctest.Wait()
			close(gate)
			calls.Wait()
			kept.Wait()
			synctest.Wait() // all are idle
		}
		end()
		c.wait()
	})
}
