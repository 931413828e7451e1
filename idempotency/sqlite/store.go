package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// Store is an [idempotency.Store] in a SQLite file. It is safe for concurrent use.
type Store struct {
	file *sqlitefile.File
}

var _ idempotency.Transactional = (*Store)(nil)

// Open opens the store in a file, whose tables it makes or upgrades.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	file, err := sqlitefile.OpenTables(ctx, sqlitefile.Config{Path: cfg.Path, Sync: sqlitefile.Sync(cfg.Sync)}, "idempotency", migrations)
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", unavailable(err))
	}
	return &Store{file: file}, nil
}

// Close gives the file back. It closes with the last in this process who has it open.
func (s *Store) Close() error { return s.file.Close() }

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
		ok, err := changes(tx, extendHeld, e.Handle, now.Add(e.Lease).UnixNano())
		if err != nil || ok {
			return err
		}
		return record.Lost(e.Handle)
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
func (s *Store) Database() any { return s.file.Owner() }

func complete(tx *sqlitefile.Tx, now time.Time, c idempotency.Completion) error {
	c.Result = c.Result.Capped()
	data, size, hash := resultColumns(c.Result)
	ok, err := changes(tx, completeHeld, c.Handle, nanos(record.Expiry(now, c.Retention)), data, size, hash)
	if err != nil || ok {
		return err
	}
	return end(tx, c.Handle, func(r *record.Record) (record.Change, error) { return r.Complete(now, c) })
}

// Abandon gives claims back with no attempt spent.
func (s *Store) Abandon(ctx context.Context, abs []idempotency.Abandonment) []error {
	return each(ctx, s, abs, func(tx *sqlitefile.Tx, now time.Time, a idempotency.Abandonment) error {
		ok, err := changes(tx, abandonHeld, a.Handle, now.Add(a.Delay).UnixNano())
		if err != nil || ok {
			return err
		}
		return end(tx, a.Handle, func(r *record.Record) (record.Change, error) { return r.Abandon(now, a) })
	})
}

// Fail ends claims after a failed attempt.
func (s *Store) Fail(ctx context.Context, fails []idempotency.Failure) []error {
	return each(ctx, s, fails, func(tx *sqlitefile.Tx, now time.Time, f idempotency.Failure) error {
		return end(tx, f.Handle, func(r *record.Record) (record.Change, error) { return r.Fail(now, f) })
	})
}

// end loads what h names, changes it and saves it.
func end(tx *sqlitefile.Tx, h idempotency.Handle, change func(*record.Record) (record.Change, error)) error {
	r, err := load(tx, h.Key, record.RunID{Job: h.Job, Run: h.Run})
	if err != nil {
		return err
	}
	what, err := change(r)
	if err != nil {
		return err
	}
	return save(tx, r, what)
}

// changes runs one of the statements on a held claim and reports whether it was held.
func changes(tx *sqlitefile.Tx, statement string, h idempotency.Handle, args ...any) (bool, error) {
	all := append([]any{h.Key.Value, h.Key.Scope, h.Token, h.Job, h.Run}, args...)
	res, err := tx.Exec(statement, all...)
	if err != nil {
		return false, fmt.Errorf("end claim: %w", err)
	}
	return res.Changed > 0, nil
}
