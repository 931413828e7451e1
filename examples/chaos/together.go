package main

import (
	"context"
	"errors"
	"sync"

	"github.com/caisson-go/caisson/worker"
)

// together runs tasks side by side. Each has a worker and an endpoint of its own, and loads the machine little.
func together(tasks []func() error) error {
	errs := make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, task := range tasks {
		wg.Go(func() { errs[i] = task() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// observeAll runs setups side by side and returns what each came to.
func observeAll(ctx context.Context, setups []setup) ([]*observed, error) {
	results := make([]*observed, len(setups))
	tasks := make([]func() error, len(setups))
	for i, s := range setups {
		tasks[i] = func() (err error) {
			results[i], err = run(ctx, s)
			return err
		}
	}
	return results, together(tasks)
}

// changeErrors returns a middleware that changes what the sender makes of a failed call.
func changeErrors(change func(*worker.Error)) func(worker.Handler) worker.Handler {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, job *worker.Job) error {
			err := next(ctx, job)
			var stated *worker.Error
			if errors.As(err, &stated) {
				change(stated)
			}
			return err
		}
	}
}
