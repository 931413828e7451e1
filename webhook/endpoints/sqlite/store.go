package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Store is an [endpoints.Store] in a SQLite file. It is safe for concurrent use.
type Store struct{ file *sqlitefile.File }

var _ endpoints.Store = (*Store)(nil)

// Open opens the store in a file, whose tables it makes or upgrades.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	file, err := sqlitefile.OpenTables(ctx, sqlitefile.Config{Path: cfg.Path, Sync: sqlitefile.Sync(cfg.Sync)}, "webhook_endpoints", migrations)
	if err != nil {
		return nil, fmt.Errorf("webhook endpoints: %w", unavailable(err))
	}
	return &Store{file: file}, nil
}

// Close gives the file back. It closes with the last in this process who has it open.
func (s *Store) Close() error { return s.file.Close() }

// Insert implements [endpoints.Store].
func (s *Store) Insert(ctx context.Context, r endpoints.Record) (endpoints.Record, error) {
	return s.change(ctx, r.ID, func(tx *sqlitefile.Tx, now time.Time, revision int64) error {
		res, err := tx.Exec(insertRecord, []byte(r.ID), []byte(r.Tenant), string(r.State), []byte(r.Reason), nanos(r.Since), blob(r.Settings), blob(r.Sealed),
			[]byte(r.Key), now.UnixNano(), now.UnixNano(), revision)
		if err != nil {
			return err
		}
		if res.Changed == 0 {
			return endpoints.ErrExists
		}
		if _, err := tx.Exec(dropHealth, []byte(r.ID)); err != nil {
			return err
		}
		return takeSecrets(tx, r)
	})
}

// Update implements [endpoints.Store].
func (s *Store) Update(ctx context.Context, r endpoints.Record) (endpoints.Record, error) {
	return s.change(ctx, r.ID, func(tx *sqlitefile.Tx, now time.Time, revision int64) error {
		res, err := tx.Exec(updateRecord, []byte(r.Tenant), string(r.State), []byte(r.Reason), nanos(r.Since), blob(r.Settings), blob(r.Sealed),
			[]byte(r.Key), now.UnixNano(), revision, []byte(r.ID), r.Revision)
		if err != nil {
			return err
		}
		if res.Changed == 0 {
			return missed(tx, r.ID)
		}
		return takeSecrets(tx, r)
	})
}

// change runs fn with the next revision, and returns the record that it leaves.
func (s *Store) change(ctx context.Context, id string, fn func(tx *sqlitefile.Tx, now time.Time, revision int64) error) (r endpoints.Record, err error) {
	err = s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		revision, err := next(tx)
		if err != nil {
			return err
		}
		if err := fn(tx, time.Now(), revision); err != nil {
			return err
		}
		r, err = find(tx, id)
		return err
	})
	if err != nil {
		return endpoints.Record{}, unavailable(err)
	}
	return r, nil
}

// Delete implements [endpoints.Store].
func (s *Store) Delete(ctx context.Context, id string, revision int64) error {
	return unavailable(s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		next, err := next(tx)
		if err != nil {
			return err
		}
		now := time.Now()
		res, err := tx.Exec(buryRecord, now.UnixNano(), next, []byte(id), revision)
		if err != nil {
			return err
		}
		if res.Changed == 0 {
			return missed(tx, id)
		}
		for _, statement := range []string{freeSecrets, dropHealth} {
			if _, err := tx.Exec(statement, []byte(id)); err != nil {
				return err
			}
		}
		_, err = tx.Exec(purgeRecords, now.Add(-endpoints.TombstoneAge).UnixNano())
		return err
	}))
}

// next takes the next revision. Writes are serial, so that revisions are in the order of commits.
func next(tx *sqlitefile.Tx) (revision int64, err error) {
	err = tx.QueryRow(nextRevision, nil, &revision)
	return revision, err
}

// missed says why a record of some revision was not there.
func missed(tx *sqlitefile.Tx, id string) error {
	r, err := find(tx, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it has revision %d by now: read it again", endpoints.ErrConflict, r.Revision)
}

// takeSecrets makes the fingerprints of a record its own.
func takeSecrets(tx *sqlitefile.Tx, r endpoints.Record) error {
	if _, err := tx.Exec(freeSecrets, []byte(r.ID)); err != nil {
		return err
	}
	for _, mark := range r.Fingerprints {
		res, err := tx.Exec(takeSecret, blob(mark), []byte(r.ID))
		if err != nil {
			return err
		}
		if res.Changed == 0 {
			return endpoints.ErrSecretInUse
		}
	}
	return nil
}

// blob is data that is not NULL.
func blob(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if errors.Is(err, sqlitefile.ErrUnavailable) {
		return fmt.Errorf("%w: %w", endpoints.ErrUnavailable, err)
	}
	return err
}
