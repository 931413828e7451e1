package pause

import (
	"context"
	"time"
)

// For waits for d, and reports whether ctx is still alive then. It returns at once when ctx is done. Safe for concurrent use.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
