package fleet

import (
	"context"
	"errors"
	"time"
)

const (
	// Every is how often a worker publishes.
	Every = 2 * time.Second
	// Live is how old a report may be. A worker that has not been heard of for longer counts as gone: it has died, or cannot reach the status store.
	Live = 10 * time.Second
)

// StatusStore is where the workers of a fleet put their reports. Implementations are safe for concurrent use.
type StatusStore interface {
	// Publish replaces the publisher's report. It costs one small write.
	Publish(ctx context.Context, r Report) error

	// Reports returns the reports of live workers, sorted by Owner and ID. A report that cannot be read, since another version of the program
	// wrote it, is left out and told by an error beside the others.
	Reports(ctx context.Context) ([]Report, error)

	// Remove takes a publisher's report away, if there is one.
	Remove(ctx context.Context, id string) error
}

// ErrUnavailable means that the status store cannot be asked for now. The call may be repeated.
var ErrUnavailable = errors.New("fleet status store unavailable")
