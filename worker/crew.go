package worker

import (
	"context"
	"runtime/debug"
	"sync"
)

// crew keeps the goroutines that run handlers. They are used again, so that a handler finds a stack that has grown already.
type crew struct {
	mu     sync.Mutex
	idle   []*handlerLoop
	closed bool
	wg     sync.WaitGroup
}

// handlerLoop is one goroutine that runs one handler at a time: send to calls, then receive from done.
type handlerLoop struct {
	calls chan handlerCall
	done  chan error
}

type handlerCall struct {
	ctx     context.Context
	handler Handler
	job     *Job
}

func (c *crew) take() *handlerLoop {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return h
	}
	h := &handlerLoop{calls: make(chan handlerCall), done: make(chan error, 1)}
	c.wg.Go(func() { h.run(c) })
	return h
}

// put hands back a loop whose done was received.
func (c *crew) put(h *handlerLoop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		close(h.calls)
		return
	}
	c.idle = append(c.idle, h)
}

// close ends all idle loops, and the others as soon as they are put back.
func (c *crew) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, h := range c.idle {
		close(h.calls)
	}
	c.idle = nil
}

func (h *handlerLoop) run(c *crew) {
	for call := range h.calls {
		h.call(c, call)
	}
}

// call runs one handler and always answers, whatever way the handler ends.
func (h *handlerLoop) call(c *crew, call handlerCall) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			h.done <- &PanicError{Value: p, Stack: debug.Stack()}
			return
		}
		// runtime.Goexit ends this goroutine: another one carries on.
		c.wg.Go(func() { h.run(c) })
		h.done <- &PanicError{}
	}()
	err := call.handler(call.ctx, call.job)
	returned = true
	h.done <- err
}
