package dlq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/idempotency"
)

// KeyReader is the part of an [idempotency.Store] that knows what has completed. One that looks up many keys in one round trip also has
//
//	Completed(ctx context.Context, keys []idempotency.Key) ([]bool, error)
//
// as the stores of this module do. Otherwise Get is called from several goroutines at once.
type KeyReader interface {
	Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error)
}

// lookups is how many keys are asked for at once.
const lookups = 16

// Completed reports for each key whether its work is done, as far as it is remembered.
func Completed(ctx context.Context, claims KeyReader, keys []idempotency.Key) ([]bool, error) {
	if many, ok := claims.(interface {
		Completed(ctx context.Context, keys []idempotency.Key) ([]bool, error)
	}); ok {
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

// unfinished returns those of ready whose work is not done, and leaves out the others. With force it returns all: those whose key is
// completed under keys of their own, since workers would take them for duplicates.
func (p *pass) unfinished(ctx context.Context, ready []republication) ([]republication, error) {
	if p.Claims == nil {
		p.forgotten(ready)
		return ready, nil
	}
	keys := make([]idempotency.Key, len(ready))
	for i, r := range ready {
		keys[i] = r.Key
	}
	done, err := Completed(ctx, p.Claims, keys)
	for errors.Is(err, idempotency.ErrUnavailable) && ctx.Err() == nil {
		sleep(ctx, 200*time.Millisecond)
		done, err = Completed(ctx, p.Claims, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("ask what has completed meanwhile: %w", err)
	}
	var rest []republication
	for i, r := range ready {
		switch {
		case !done[i] || !r.keyed:
			rest = append(rest, r)
		case p.Force:
			if err := r.rekey(); err != nil {
				p.refuse(r.id, err)
				continue
			}
			p.report.Forced++
			rest = append(rest, r)
		case r.cause == CauseMismatch:
			p.refuse(r.id, errOtherPayload)
		default:
			p.report.Completed++
			p.keep(Problem{ID: r.id, Completed: true, Error: "its key was completed meanwhile: its work is done"})
		}
	}
	p.forgotten(rest)
	return rest, nil
}

// forgotten counts the jobs of which nobody can tell whether they have completed since they died.
func (p *pass) forgotten(rs []republication) {
	if p.Force {
		return
	}
	oldest := p.Now().Add(-p.KeyRetention)
	for _, r := range rs {
		if p.Claims == nil || !r.keyed || r.died.Before(oldest) {
			p.report.Forgotten++
		}
	}
}

// diedAt is when e was given up; an import stores an entry anew, so that StoredAt may be later.
func (e Entry) diedAt() time.Time {
	if !e.LastFailedAt.IsZero() && e.LastFailedAt.Before(e.StoredAt) {
		return e.LastFailedAt
	}
	return e.StoredAt
}

// maxKey is the most bytes of a key on the wire.
const maxKey = 1000

// forcedKey returns the key under which a run goes again although key is completed: the same for the same run, so that a doubled message is
// still run once.
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
