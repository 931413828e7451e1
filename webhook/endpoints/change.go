package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// conflicts is how often a change is made again on top of another one that came first.
const conflicts = 50

// Edit lets change alter an endpoint, checks it, and keeps it. change may be called several times. It cannot alter the id; state, reason and
// secrets have methods of their own, and what change does to them is refused. A revision above 0 is the one that the endpoint must still have, else
// the error wraps [ErrConflict].
func (r *Registry) Edit(ctx context.Context, id string, revision int64, change func(*webhook.Endpoint) error) (Entry, error) {
	e, _, err := r.change(ctx, id, revision, func(e *webhook.Endpoint, _ time.Time) (bool, error) {
		before := *e
		before.Secrets, before.Retiring = slices.Clone(e.Secrets), slices.Clone(e.Retiring)
		if err := change(e); err != nil {
			return false, err
		}
		if err := sameIdentity(before, *e); err != nil {
			return false, err
		}
		checked, err := r.cfg.Guard.Check(*e)
		*e = checked
		return true, err
	})
	return e, err
}

// sameIdentity refuses what an edit may not do.
func sameIdentity(before, after webhook.Endpoint) error {
	switch {
	case after.ID != before.ID:
		return fmt.Errorf("id cannot be changed to %q: add another endpoint and delete this one", after.ID)
	case cmp.Or(after.Tenant, webhook.DefaultTenant) != cmp.Or(before.Tenant, webhook.DefaultTenant):
		return fmt.Errorf("tenant cannot be changed to %q, which would get what waits for %q: delete the endpoint and add it again", after.Tenant, before.Tenant)
	case after.State != before.State || after.Reason != before.Reason || !after.Since.Equal(before.Since):
		return errors.New("state cannot be edited: pause, disable or enable the endpoint")
	case !slices.EqualFunc(before.Secrets, after.Secrets, signature.Secret.Equal),
		!slices.EqualFunc(before.Retiring, after.Retiring, func(a, b webhook.RetiringSecret) bool {
			return a.Secret.Equal(b.Secret) && a.Until.Equal(b.Until)
		}):
		return errors.New("secrets cannot be edited: rotate them")
	}
	return nil
}

// RotateSecret gives an endpoint a new current secret; the one it had signs beside it for the window. A zero secret makes a new symmetric one.
// A zero window retires the old secrets at once, those of earlier rotations too.
func (r *Registry) RotateSecret(ctx context.Context, id string, secret signature.Secret, window time.Duration) (Entry, error) {
	if window < 0 {
		return Entry{}, fmt.Errorf("rotate secret of endpoint %q: window %s: must be positive; 0 retires the old secret at once", id, window)
	}
	if secret.IsZero() {
		secret = signature.NewSecret()
	}
	e, _, err := r.change(ctx, id, 0, func(e *webhook.Endpoint, now time.Time) (bool, error) {
		for _, old := range e.Secrets {
			if old.Equal(secret) {
				return false, errors.New("secret is the one that it has: give another, or none to make one")
			}
			e.Retiring = append(e.Retiring, webhook.RetiringSecret{Secret: old, Until: now.Add(window)})
		}
		if window == 0 {
			e.Retiring = nil
		}
		e.Secrets = []signature.Secret{secret}
		checked, err := r.cfg.Guard.Check(*e)
		*e = checked
		return true, err
	})
	return e, err
}

// Reseal seals what is sealed with another key than the current one anew, and returns how many endpoints that were. It may be repeated. One that
// cannot be read is told by the error, and keeps no other from being sealed.
func (r *Registry) Reseal(ctx context.Context) (int, error) {
	const page = 100
	var errs []error
	done := 0
	for after := ""; ; {
		records, err := r.cfg.Store.List(ctx, Filter{NotKey: r.cfg.Keys.Current()}, after, page)
		if err != nil {
			return done, errors.Join(append(errs, fmt.Errorf("seal endpoints anew: %w", err))...)
		}
		for _, record := range records {
			after = record.ID
			_, _, err := r.change(ctx, record.ID, 0, func(*webhook.Endpoint, time.Time) (bool, error) { return true, nil })
			switch {
			case err == nil:
				done++
			case !errors.Is(err, webhook.ErrUnknownEndpoint): // it was deleted meanwhile
				errs = append(errs, err)
			}
			if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
				return done, errors.Join(errs...)
			}
		}
		if len(records) < page {
			return done, errors.Join(errs...)
		}
	}
}

// change reads an endpoint, lets fn alter it, and writes it, again and again while others change it in between. Secrets whose window is over are
// left out of what is written. It reports whether fn changed something. Beside an error of the write, entry is what was to be written.
func (r *Registry) change(ctx context.Context, id string, revision int64, fn func(e *webhook.Endpoint, now time.Time) (bool, error)) (entry Entry, changed bool, err error) {
	err = r.retry(ctx, revision, func() error {
		record, err := r.cfg.Store.Get(ctx, id)
		if err != nil {
			return err
		}
		if revision > 0 && record.Revision != revision {
			return fmt.Errorf("%w: it has revision %d, not %d: read it again", ErrConflict, record.Revision, revision)
		}
		if entry, err = r.cfg.Keys.decode(record); err != nil {
			return err
		}
		now := time.Now().UTC()
		entry.Retiring = signing(entry.Retiring, now)
		if changed, err = fn(&entry.Endpoint, now); err != nil || !changed {
			return refusal(err)
		}
		next, err := r.cfg.Keys.encode(entry.Endpoint)
		if err != nil {
			return err
		}
		next.Revision = record.Revision
		if record, err = r.cfg.Store.Update(ctx, next); err != nil {
			return err
		}
		entry, err = r.cfg.Keys.decode(record)
		return err
	})
	switch {
	case err == nil:
		return entry, changed, nil
	case strings.HasPrefix(err.Error(), fmt.Sprintf("endpoint %q: ", id)): // it says which
		return entry, false, fmt.Errorf("change %w", err)
	}
	return entry, false, fmt.Errorf("change endpoint %q: %w", id, err)
}

// retry repeats fn while it meets a conflict, unless the caller named a revision: then the conflict is his to solve.
func (r *Registry) retry(ctx context.Context, revision int64, fn func() error) error {
	for try := 0; ; try++ {
		err := fn()
		if !errors.Is(err, ErrConflict) || revision > 0 || try == conflicts {
			return err
		}
		t := time.NewTimer(rand.N(time.Duration(try+1) * time.Millisecond)) //nolint:gosec // spreads load
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}
