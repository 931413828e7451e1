package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// Store is a [dlq.Store] in a SQLite file. It is safe for concurrent use.
type Store struct {
	file *sqlitefile.File
}

var _ dlq.Store = (*Store)(nil)

// Open opens the store in a file, whose tables it makes or upgrades.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	file, err := sqlitefile.OpenTables(ctx, sqlitefile.Config{Path: cfg.Path, Sync: sqlitefile.Sync(cfg.Sync)}, "dlq", migrations)
	if err != nil {
		return nil, fmt.Errorf("dlq: %w", unavailable(err))
	}
	return &Store{file: file}, nil
}

// Close gives the file back. It closes with the last in this process who has it open.
func (s *Store) Close() error { return s.file.Close() }

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if errors.Is(err, sqlitefile.ErrUnavailable) {
		return fmt.Errorf("%w: %w", dlq.ErrUnavailable, err)
	}
	return err
}

// Put stores entries.
func (s *Store) Put(ctx context.Context, entries []dlq.Entry) []error {
	errs := make([]error, len(entries))
	if len(entries) == 0 {
		return errs
	}
	err := s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		now := time.Now()
		for i, e := range entries {
			e, err := e.ForStore(now)
			if errs[i] = err; err != nil {
				continue
			}
			if err := put(tx, e); err != nil {
				return fmt.Errorf("put dead letter %s: %w", e.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{unavailable(err)}, len(errs))
	}
	return errs
}

func put(tx *sqlitefile.Tx, e dlq.Entry) error {
	added, err := insert(tx, e)
	if err != nil || added {
		return err
	}
	seq, state, _, err := find(tx, e.ID)
	if err != nil {
		return err
	}
	if other, err := hasOther(tx, seq, state, e.Message.Body); err != nil || other {
		if err == nil && e.ID == dlq.EntryID(e.Job, e.Run) {
			e.ID = dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)
			return put(tx, e)
		}
		return err
	}
	switch {
	case state != dlq.StateHeld:
		return nil
	case e.State == dlq.StateHeld:
		_, err = tx.Exec(freeEntry, seq)
		return err
	}
	if err := remove(tx, seq); err != nil {
		return err
	}
	_, err = insert(tx, e)
	return err
}

// hasOther reports whether the entry at seq holds another payload than body. One that was purged cannot tell.
func hasOther(tx *sqlitefile.Tx, seq int64, state dlq.State, body []byte) (bool, error) {
	if state == dlq.StatePurged {
		return false, nil
	}
	s := stored{seq: seq}
	err := s.loadMessage(tx)
	return !bytes.Equal(s.Message.Body, body), err
}

// find returns the row, state and reservation's owner of an entry, or [dlq.ErrNotFound].
func find(tx *sqlitefile.Tx, id string) (seq int64, state dlq.State, owner sql.NullString, err error) {
	err = tx.QueryRow(selectState, []any{id}, &seq, (*string)(&state), &owner)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%s: %w", id, dlq.ErrNotFound)
	}
	return seq, state, owner, err
}

// Get returns one entry with its message.
func (s *Store) Get(ctx context.Context, id string) (dlq.Entry, error) {
	var entry dlq.Entry
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		found, err := selectEntries(tx, selectEntry, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s: %w", id, dlq.ErrNotFound)
		}
		err = found[0].loadMessage(tx)
		entry = found[0].Entry
		return err
	})
	return entry, unavailable(err)
}

// GetMany returns those of the entries that exist, with their messages.
func (s *Store) GetMany(ctx context.Context, ids []string) ([]dlq.Entry, error) {
	var entries []dlq.Entry
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		entries = nil
		for _, id := range ids {
			found, err := selectEntries(tx, selectEntry, id)
			if err != nil {
				return err
			}
			for i := range found {
				if err := found[i].loadMessage(tx); err != nil {
					return err
				}
				entries = append(entries, found[i].Entry)
			}
		}
		return nil
	})
	return entries, unavailable(err)
}
