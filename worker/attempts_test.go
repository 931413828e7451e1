package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
)

// A kind may give a job more or fewer attempts than the others of the kind have; keyed or not, the job runs that often and is told so.
func TestJobHasItsOwnNumberOfAttempts(t *testing.T) {
	t.Parallel()
	for name, keyed := range map[string]bool{"keyed": true, "not keyed": false} {
		t.Run(name, func(t *testing.T) {
			own := map[string]int{"fewer": 2, "more": 9, "as the kind": 0}
			var mu sync.Mutex // of what the handler shares with the test
			calls, told := map[string]int{}, map[string]int{}
			registry := worker.NewRegistry()
			worker.Handle(registry, worker.Kind[[]byte]{
				Name:     "k",
				Config:   worker.KindConfig{Keyed: &keyed, MaxAttempts: 4, Backoff: every(t, time.Second)},
				Attempts: func(job *worker.Job) int { return own[job.ID] },
			}, func(ctx context.Context, _ []byte) error {
				job := worker.JobFrom(ctx)
				mu.Lock()
				defer mu.Unlock()
				calls[job.ID]++
				told[job.ID] = job.MaxAttempts
				return errBoom
			})
			inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
				want := map[string]int{"fewer": 2, "more": 9, "as the kind": 4}
				for id := range want {
					b.enqueue(worker.NewJob{Kind: "k", ID: id})
				}
				b.after(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				for id, n := range want {
					e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
					if calls[id] != n || told[id] != n || err != nil || e.AttemptCount != n || e.Cause != dlq.CauseExhausted {
						t.Errorf("%s: %d calls, told of %d; dead letter %d, %s, error %v", id, calls[id], told[id], e.AttemptCount, e.Cause, err)
					}
				}
			})
		})
	}
}
