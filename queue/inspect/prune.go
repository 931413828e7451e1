package inspect

import (
	"context"
	"time"
)

// Pruner is implemented by brokers that can hold queues which nobody needs any more, such as those that an older version made.
// `worker queues prune` calls it.
type Pruner interface {
	// Prune removes such queues once they have been empty for the given time, and returns all that it found. It never removes a queue
	// with messages in it, and returns at once if there is nothing to remove. No older version may be running.
	Prune(ctx context.Context, empty time.Duration) ([]Leftover, error)
}

// Leftover is a queue that nobody needs any more.
type Leftover struct {
	// Name of the queue, as the broker knows it.
	Name string `json:"name"`
	// Messages that wait in it. They go where they belong in time.
	Messages int64 `json:"messages"`
	// Removed says that it is gone.
	Removed bool `json:"removed"`
}
