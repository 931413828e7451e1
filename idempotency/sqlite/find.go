package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

const (
	findKeys = `SELECT value, scope FROM (
	SELECT value, scope FROM caisson_keys WHERE value = ?1
	UNION SELECT value, scope FROM caisson_keys WHERE job = ?1 AND job <> value) ORDER BY scope, value LIMIT ?2+0`
	findRuns = `SELECT run, attempt, closed, not_before, expires, history FROM caisson_runs WHERE job = ? ORDER BY run DESC LIMIT ?+0`
)

var _ idempotency.Finder = (*Store)(nil)

// Find implements [idempotency.Finder]. The records are read one after the other: they need not be of one moment.
func (s *Store) Find(ctx context.Context, text string) (idempotency.Found, error) {
	const limit = idempotency.MaxFound + 1
	var keys []idempotency.Key
	var runs []idempotency.Record
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) (err error) {
		if keys, err = selectKeys(tx, text, limit); err != nil {
			return err
		}
		runs, err = selectRuns(tx, text, limit)
		return err
	})
	if err != nil {
		return idempotency.Found{}, unavailable(fmt.Errorf("find %q: %w", text, err))
	}
	found := idempotency.Found{Now: time.Now()}
	if found.Records, err = record.Recall(ctx, s.Get, keys); err != nil {
		return idempotency.Found{}, err
	}
	found.Add(runs)
	return found, nil
}

func selectKeys(tx *sqlitefile.Tx, text string, limit int) (keys []idempotency.Key, err error) {
	rows, err := tx.Query(findKeys, text, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k idempotency.Key
		if err := rows.Scan(&k.Value, &k.Scope); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

func selectRuns(tx *sqlitefile.Tx, job string, limit int) (runs []idempotency.Record, err error) {
	rows, err := tx.Query(findRuns, job, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r := idempotency.Record{Job: job}
		var notBefore, expires sql.NullInt64
		var history []byte
		if err := rows.Scan(&r.Run, &r.Attempt, &r.Closed, &notBefore, &expires, scanner{&history}); err != nil {
			return nil, err
		}
		if expires.Valid {
			notBefore = expires
		}
		if notBefore.Valid {
			r.Until = time.Unix(0, notBefore.Int64)
		}
		if r.History, err = record.DecodeHistory(history); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}
