package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// request is one call of Write on its way through the writer.
type request struct {
	fn      func(*Tx) error
	durable bool
	state   atomic.Uint32
	done    chan error // 1 slot
	err     error      // the writer's, between fn and the answer
}

const (
	waiting uint32 = iota
	picked
	cancelled
)

// Write runs fn in a transaction and returns once it is committed. Calls made at the same time share one transaction and one
// wait for the disk. durable asks that the commit survive a power cut; see [Sync].
//
// fn runs in the writer's goroutine: it must be quick, must not call the File, and must reset what it captured, since it may run
// more than once; only its last run counts. If fn returns an error its effects are undone, the others' are kept, and
// Write returns that error. A panic in fn undoes its effects and continues in the caller.
//
// A done ctx takes back a write that the writer has not picked up and returns ctx's error; nothing was written then. After
// that Write waits for the answer. An error that wraps [ErrUnavailable] means not committed, with one exception: after an
// I/O error in a commit a crash may still bring it back.
func (f *database) Write(ctx context.Context, durable bool, fn func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := f.requests.Get().(*request)
	r.fn, r.durable = fn, durable
	r.state.Store(waiting)
	if err := f.enqueue(r); err != nil {
		return err
	}
	var err error
	select {
	case err = <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, cancelled) {
			return ctx.Err() // the writer drops r: it must not be used again
		}
		err = <-r.done
	}
	r.fn, r.err = nil, nil
	f.requests.Put(r)
	if err != nil {
		repanic(err)
	}
	return err
}

// repanic goes on with a panic of fn where its caller can see it.
func repanic(err error) {
	var p *panicError
	if errors.As(err, &p) {
		panic(fmt.Sprintf("%v\n\nin the writer:\n%s", p.value, p.stack))
	}
}

func (f *database) enqueue(r *request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	f.queue = append(f.queue, r)
	if r.durable {
		f.durable++
	}
	if len(f.queue) == 1 {
		f.signal()
	}
	return nil
}

// write is the writer: the only user of the writer connection.
func (f *database) write() {
	defer close(f.done)
	idle := newIdle(f)
	var batch []*request
	for {
		f.mu.Lock()
		pending, closed := len(f.queue), f.closed
		full := f.cfg.Sync == SyncFull || f.durable > 0
		f.mu.Unlock()
		switch {
		case pending > 0:
			batch = f.commit(batch[:0], full)
			clear(batch)
			idle.wrote(time.Now())
		case closed:
			f.closeErr = f.writer.close()
			return
		}
		idle.work(time.Now())
		if pending == 0 {
			idle.wait()
		}
	}
}

// commit begins a transaction, takes what waits, runs it and answers. It returns the batch for reuse. The requests are taken
// after BEGIN, so that those that come while another process holds the file share the transaction and can be cancelled.
func (f *database) commit(batch []*request, full bool) []*request {
	if err := f.begin(full); err != nil {
		batch = f.take(batch, true)
		answer(batch, err)
		return batch
	}
	// Callers that were just answered and have more to write get to queue up first: under load that triples the batch, and costs
	// an idle machine nothing.
	runtime.Gosched()
	batch = f.take(batch, full)
	if len(batch) == 0 {
		f.rollback()
		return batch
	}
	err := f.runAll(batch)
	if err == nil {
		answer(batch, nil)
		return batch
	}
	f.rollback()
	switch {
	case len(batch) == 1:
		answer(batch, err)
	case errors.Is(err, ErrUnavailable):
		f.runAlone(batch, full)
	default:
		f.runIsolated(batch, full)
	}
	return batch
}

// take moves waiting requests to batch. Without full it stops at the first durable one.
func (f *database) take(batch []*request, full bool) []*request {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.queue {
		if len(batch) == f.cfg.MaxBatch || r.durable && !full {
			break
		}
		n++
		if r.durable {
			f.durable--
		}
		if r.state.CompareAndSwap(waiting, picked) {
			batch = append(batch, r)
		}
	}
	rest := copy(f.queue, f.queue[n:])
	clear(f.queue[rest:])
	f.queue = f.queue[:rest]
	return batch
}

// begin takes the write lock. SQLite's own back-off starves one of two busy processes for seconds; a short jittered pause of our
// own keeps the longest wait near 0.2 s.
//
//nolint:contextcheck // the writer serves many callers: no one context may end its transaction
func (f *database) begin(full bool) error {
	if full != f.full {
		mode := "PRAGMA synchronous=NORMAL"
		if full {
			mode = "PRAGMA synchronous=FULL"
		}
		if err := f.writer.script(mode); err != nil {
			return err
		}
		f.full = full
	}
	return f.retry(uninterrupted, func() error { _, err := f.writer.execute("BEGIN IMMEDIATE", nil); return err })
}

// rollback ends the transaction; that there is none any more is what it wants.
func (f *database) rollback() { _, _ = f.writer.execute("ROLLBACK", nil) }

// runAll runs the batch and commits. It stops at the first error.
func (f *database) runAll(batch []*request) error {
	for _, r := range batch {
		if err := f.run(r); err != nil {
			return err
		}
	}
	_, err := f.writer.execute("COMMIT", nil)
	return err
}

// runIsolated runs the batch again with a savepoint around each, so that one that fails costs only itself.
func (f *database) runIsolated(batch []*request, full bool) {
	if err := f.begin(full); err != nil {
		answer(batch, err)
		return
	}
	err := func() error {
		for _, r := range batch {
			if _, err := f.writer.execute("SAVEPOINT one", nil); err != nil {
				return err
			}
			if r.err = f.run(r); r.err != nil {
				if _, err := f.writer.execute("ROLLBACK TO one", nil); err != nil {
					return r.err // SQLite has ended the whole transaction
				}
			}
			if _, err := f.writer.execute("RELEASE one", nil); err != nil {
				return err
			}
		}
		_, err := f.writer.execute("COMMIT", nil)
		return err
	}()
	if err != nil {
		f.rollback()
		f.runAlone(batch, full)
		return
	}
	for _, r := range batch {
		r.done <- r.err
	}
}

// runAlone gives each request its own transaction: with a full disk, what frees space still goes through.
func (f *database) runAlone(batch []*request, full bool) {
	for _, r := range batch {
		err := f.begin(full)
		if err == nil {
			if err = f.run(r); err == nil {
				_, err = f.writer.execute("COMMIT", nil)
			}
			if err != nil {
				f.rollback()
			}
		}
		r.done <- err
	}
}

// run calls fn once.
func (f *database) run(r *request) (err error) {
	tx := &f.tx
	*tx = Tx{conn: f.writer}
	defer func() {
		if v := recover(); v != nil {
			_ = f.writer.closeRows()
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	err = r.fn(tx)
	if e := f.writer.closeRows(); err == nil {
		err = tx.note(e)
	}
	if err == nil {
		err = tx.broken
	}
	return err
}

func answer(batch []*request, err error) {
	for _, r := range batch {
		r.done <- err
	}
}

// panicError carries a panic of fn to its caller.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }
