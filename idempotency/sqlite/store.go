package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/sqlitefile"
)

// Store is an [idempotency.Store] in a SQLite file. It is safe for concurrent use.
type Store struct {
	file *sqlitefile.File
}

var _ idempotency.Transactional = (*Store)(nil)

// New returns the store in file and makes or upgrades its tables. The caller keeps and closes the file.
func New(ctx context.Context, file *sqlitefile.File) (*Store, error) {
	if err := file.Migrate(ctx, "idempotency", migrations); err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	return &Store{file: file}, nil
}

// write runs do in one transaction that joins those of concurrent calls. It need not wait for the disk: see the package's
// guarantees.
func (s *Store) write(ctx context.Context, do func(tx *sqlitefile.Tx, now time.Time) error) error {
	return unavailable(s.file.Write(ctx, false, func(tx *sqlitefile.Tx) error { return do(tx, time.Now()) }))
}

// each answers a batch of writes on claims, item by item. An error that is not [idempotency.ErrClaimLost] fails them all.
func each[T any](ctx context.Context, s *Store, items []T, do func(tx *sqlitefile.Tx, now time.Time, item T) error) []error {
	errs := make([]error, len(items))
	if len(items) == 0 {
		return errs
	}
	err := s.write(ctx, func(tx *sqlitefile.Tx, now time.Time) error {
		for i, item := range items {
			errs[i] = do(tx, now, item)
			if errs[i] != nil && !errors.Is(errs[i], idempotency.ErrClaimLost) {
				return errs[i]
			}
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if errors.Is(err, sqlitefile.ErrUnavailable) {
		return fmt.Errorf("%w: %w", idempotency.ErrUnavailable, err)
	}
	return err
}

// Extend prolongs claims.
func (s *Store) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	return each(ctx, s, exts, func(tx *sqlitefile.Tx, now time.Time, e idempotency.Extension) error {
		if e.Lease <= 0 {
			return fmt.Errorf("%w: extension by %v must be positive", idempotency.ErrClaimLost, e.Lease)
		}
		ok, err := changes(tx, extendHeld, e.Held, now.Add(e.Lease).UnixNano())
		if err != nil || ok {
			return err
		}
		return lost(e.Held)
	})
}

// Complete closes claims with success.
func (s *Store) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	return each(ctx, s, comps, complete)
}

// InTx implements [idempotency.Transactional]. tx is the file's own *sqlitefile.Tx: it is meant for the queue in the same file, whose ack
// then commits together with the completion. fn must be quick, since it holds the file's one writer, and may run more than once.
func (s *Store) InTx(ctx context.Context, c idempotency.Completion, fn func(ctx context.Context, tx any) error) error {
	return s.write(ctx, func(tx *sqlitefile.Tx, now time.Time) error {
		if err := complete(tx, now, c); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

// Database returns the file that the claims live in.
func (s *Store) Database() any { return s.file }

func complete(tx *sqlitefile.Tx, now time.Time, c idempotency.Completion) error {
	c.Result = c.Result.Capped()
	expires := now.Add(cmp.Or(c.Retention, idempotency.DefaultRetention)).UnixNano()
	data, size, hash := resultColumns(c.Result)
	ok, err := changes(tx, completeHeld, c.Held, expires, data, size, hash)
	if err != nil || ok {
		return err
	}
	return completeSlowly(tx, c, expires)
}

// completeSlowly completes a claim whose ledger is not in its row, and answers a repeated completion.
func completeSlowly(tx *sqlitefile.Tx, c idempotency.Completion, expires int64) error {
	r, err := load(tx, c.Key, runID{c.Job, c.Run})
	if err != nil {
		return err
	}
	if r.row.state == idempotency.Completed && r.row.token == c.Token && r.row.holder == r.id {
		return nil
	}
	if !r.holds(c.Held) && !r.between(c.Held) {
		return lost(c.Held)
	}
	r.row.state, r.row.result = idempotency.Completed, c.Result
	r.row.until, r.row.expires = never, at(expires)
	r.run.expires = at(expires)
	return r.save(tx)
}

// Abandon gives claims back with no attempt spent.
func (s *Store) Abandon(ctx context.Context, abs []idempotency.Abandonment) []error {
	return each(ctx, s, abs, func(tx *sqlitefile.Tx, now time.Time, a idempotency.Abandonment) error {
		notBefore := now.Add(a.Delay).UnixNano()
		ok, err := changes(tx, abandonHeld, a.Held, notBefore)
		if err != nil || ok {
			return err
		}
		r, err := load(tx, a.Key, runID{a.Job, a.Run})
		if err != nil {
			return err
		}
		if !r.holds(a.Held) {
			return lost(a.Held)
		}
		r.row.state, r.row.until = 0, never
		r.run.attempt = max(0, r.run.attempt-1)
		r.run.notBefore = at(notBefore)
		return r.save(tx)
	})
}

// Fail ends claims after a failed attempt.
func (s *Store) Fail(ctx context.Context, fails []idempotency.Failure) []error {
	return each(ctx, s, fails, func(tx *sqlitefile.Tx, now time.Time, f idempotency.Failure) error {
		r, err := load(tx, f.Key, runID{f.Job, f.Run})
		if err != nil {
			return err
		}
		if !r.holds(f.Held) {
			return lost(f.Held)
		}
		r.row.state, r.row.until = 0, never
		r.run.exists = true
		r.run.history = idempotency.AppendHistory(r.run.history, f.Attempt)
		if f.Final {
			expires := at(now.Add(cmp.Or(f.Retention, idempotency.DefaultRetention)).UnixNano())
			r.row.payload, r.row.expires = nil, expires
			r.run.closed, r.run.expires = true, expires
		} else {
			r.run.notBefore = at(now.Add(f.Delay).UnixNano())
		}
		return r.save(tx)
	})
}

// holds says that h is still the key's claim.
func (r *records) holds(h idempotency.Held) bool {
	return r.row.state == idempotency.Acquired && r.row.token == h.Token && r.row.holder == r.id
}

// between says that h was the key's last claim, has failed or was abandoned, and that its run is not given up.
func (r *records) between(h idempotency.Held) bool {
	return r.row.state == 0 && r.row.token == h.Token && r.row.holder == r.id && !r.run.closed
}

// changes runs one of the statements on a held claim and reports whether it was held.
func changes(tx *sqlitefile.Tx, statement string, h idempotency.Held, args ...any) (bool, error) {
	all := append([]any{h.Key.Value, h.Key.Scope, h.Token, h.Job, h.Run}, args...)
	res, err := tx.Exec(statement, all...)
	if err != nil {
		return false, fmt.Errorf("end claim: %w", err)
	}
	return res.Changed > 0, nil
}

func lost(h idempotency.Held) error {
	return fmt.Errorf("job %q run %d: %w", h.Job, h.Run, idempotency.ErrClaimLost)
}
