package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Store is a [journal.Store] in a SQLite file. It is safe for concurrent use.
type Store struct {
	file *sqlitefile.File
}

var _ journal.Store = (*Store)(nil)

// Open opens the store in a file, whose tables it makes or upgrades.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	file, err := sqlitefile.OpenTables(ctx, sqlitefile.Config{Path: cfg.Path, Sync: sqlitefile.Sync(cfg.Sync)}, "webhook_journal", migrations)
	if err != nil {
		return nil, fmt.Errorf("webhook journal: %w", unavailable(err))
	}
	return &Store{file: file}, nil
}

// Close gives the file back. It closes with the last in this process who has it open.
func (s *Store) Close() error { return s.file.Close() }

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if errors.Is(err, sqlitefile.ErrUnavailable) {
		return fmt.Errorf("%w: %w", journal.ErrUnavailable, err)
	}
	return err
}

// step is how many rows one transaction of Expire deletes.
const step = 500

// Expire deletes what is older than its retention, in steps.
func (s *Store) Expire(ctx context.Context, events, attempts time.Duration) error {
	now := time.Now()
	if err := s.inSteps(ctx, expireEvents, now.Add(-events)); err != nil {
		return err
	}
	return s.inSteps(ctx, expireAttempts, now.Add(-attempts))
}

func (s *Store) inSteps(ctx context.Context, statement string, before time.Time) error {
	for changed := int64(step); changed == step; {
		err := s.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
			res, err := tx.Exec(statement, before.UnixMicro(), step)
			changed = res.Changed
			return err
		})
		if err != nil {
			return unavailable(err)
		}
	}
	return nil
}
