package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/pause"
)

// KeyReader is the part of an [idempotency.Store] that knows what has completed. Get is called from several goroutines at once, unless the
// reader is a [BulkKeyReader].
type KeyReader interface {
	Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error)
}

// BulkKeyReader is a [KeyReader] that looks up many keys in one round trip, as the stores of this module do.
type BulkKeyReader interface {
	// Completed reports for each key whether its work is done, as far as it is remembered.
	Completed(ctx context.Context, keys []idempotency.Key) ([]bool, error)
}

// lookups is how many keys are looked up at once.
const lookups = 16

// completed reports for each key whether its work is done, as far as it is remembered.
func completed(ctx context.Context, claims KeyReader, keys []idempotency.Key) ([]bool, error) {
	if many, ok := claims.(BulkKeyReader); ok {
		done, err := many.Completed(ctx, keys)
		if err != nil {
			return nil, fmt.Errorf("look up %d keys: %w", len(keys), err)
		}
		return done, nil
	}
	done := make([]bool, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for i, key := range keys {
		group.Go(func() error {
			r, err := claims.Get(ctx, key)
			if err != nil && !errors.Is(err, idempotency.ErrNotFound) {
				return fmt.Errorf("look up key %q of kind %s: %w", key.Value, key.Scope, err)
			}
			done[i] = err == nil && r.State == idempotency.StatusCompleted
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return done, nil
}

// errOtherPayload is why a job stays dead whose key belongs to other, completed work.
var errOtherPayload = errors.New("its key was completed with another payload, so that it would die of that again: enqueue its payload under another key, or replay it with --force")

// unfinished returns those of ready whose work is not done. With force it returns all, those whose key is completed under new keys:
// workers would take them for duplicates.
func (r *runner) unfinished(ctx context.Context, ready []republication) ([]republication, error) {
	if r.Claims == nil {
		r.forgotten(ready)
		return ready, nil
	}
	keys := make([]idempotency.Key, len(ready))
	for i, job := range ready {
		keys[i] = job.Key
	}
	done, err := completed(ctx, r.Claims, keys)
	for errors.Is(err, idempotency.ErrUnavailable) && ctx.Err() == nil {
		pause.For(ctx, 200*time.Millisecond)
		done, err = completed(ctx, r.Claims, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("ask what has completed meanwhile: %w", err)
	}
	var rest []republication
	for i, job := range ready {
		switch {
		case !done[i] || !job.keyed:
			rest = append(rest, job)
		case r.Force:
			if err := job.rekey(); err != nil {
				r.refuse(job.id, err)
				continue
			}
			r.report.Forced++
			rest = append(rest, job)
		case job.cause == dlq.CauseMismatch:
			r.refuse(job.id, errOtherPayload)
		default:
			r.report.Completed++
			r.keep(Problem{ID: job.id, Completed: true, Error: "its key was completed meanwhile: its work is done"})
		}
	}
	r.forgotten(rest)
	return rest, nil
}

// forgotten counts the jobs that may have completed since they died without claims knowing.
func (r *runner) forgotten(rs []republication) {
	if r.Force {
		return
	}
	oldest := r.Now().Add(-r.KeyRetention)
	for _, job := range rs {
		if r.Claims == nil || !job.keyed || job.died.Before(oldest) {
			r.report.Forgotten++
		}
	}
}

// diedAt is when e was given up; an import stores an entry anew, so that StoredAt may be later.
func diedAt(e dlq.Entry) time.Time {
	if !e.LastFailedAt.IsZero() && e.LastFailedAt.Before(e.StoredAt) {
		return e.LastFailedAt
	}
	return e.StoredAt
}

// maxKey is the most bytes of a key on the wire.
const maxKey = 1000

// forcedKey returns the key of a run that goes again although key is completed. It depends on key and run alone, so that a doubled message
// still runs once.
func forcedKey(key string, run int) string {
	suffix := "#replay-" + strconv.Itoa(run)
	if len(key)+len(suffix) <= maxKey {
		return key + suffix
	}
	sum := idempotency.FingerprintOf([]byte(key))
	suffix = fmt.Sprintf("#%x%s", sum[:8], suffix)
	key = key[:maxKey-len(suffix)]
	for !utf8.ValidString(key) {
		key = key[:len(key)-1]
	}
	return key + suffix
}
