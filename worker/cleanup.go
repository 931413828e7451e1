package worker

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
)

// cleanUpChunk is how many records one call removes, so that no call holds a store for long.
const cleanUpChunk = 1000

// cleanUp removes expired keys and dead letters until ctx is done.
func (w *Worker) cleanUp(ctx context.Context) {
	for pause.For(ctx, jitter(w.cfg.CleanUpInterval)) {
		if w.cfg.Store != nil {
			w.expire(ctx, "idempotency", func() (int, error) { return w.cfg.Store.Expire(ctx, cleanUpChunk) })
		}
		if w.deadLetters != nil {
			w.expire(ctx, "dlq", func() (int, error) {
				return w.deadLetters.Expire(ctx, w.cfg.DeadLetterRetention, cleanUpChunk)
			})
		}
	}
}

func (w *Worker) expire(ctx context.Context, what string, batch func() (int, error)) {
	removed := 0
	for {
		n, err := batch()
		removed += n
		if err != nil || n < cleanUpChunk {
			if removed > 0 || (err != nil && ctx.Err() == nil) {
				w.observe(&CleanUp{What: what, Removed: removed, Err: err})
			}
			return
		}
		if !pause.For(ctx, 50*time.Millisecond) {
			return
		}
	}
}
