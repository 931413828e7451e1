package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// load reads the key's row and the ledger entry of id; of the key's holder if id is empty.
func load(tx *sqlitefile.Tx, key idempotency.Key, id record.RunID) (*record.Record, error) {
	r := &record.Record{Key: key, ID: id}
	inRow, err := loadKey(tx, r)
	if err != nil {
		return nil, err
	}
	if id == (record.RunID{}) {
		r.ID = r.Row.Holder
	}
	if inRow.Exists && r.Row.Holder == r.ID {
		r.Run, r.Inline = inRow, true
		return r, nil
	}
	r.Displaced, r.Holder = inRow, r.Row.Holder
	if r.Run, err = loadRun(tx, selectRun, r.ID); err != nil || r.Run.Exists {
		return r, err
	}
	r.Run, err = loadRun(tx, selectElsewhere, r.ID)
	r.Elsewhere = r.Run.Exists
	return r, err
}

func loadKey(tx *sqlitefile.Tx, r *record.Record) (inRow record.Ledger, err error) {
	var size, attempt, until, expires, notBefore, closed sql.NullInt64
	var hash, history []byte
	var state int
	row := &r.Row
	err = tx.QueryRow(selectKey, []any{r.Key.Value, r.Key.Scope},
		&state, &row.Token, &row.Payload, &row.Holder.Job, &row.Holder.Run, &row.Owner, &until, &expires, &row.Result.Data, &size, &hash,
		&attempt, &notBefore, &closed, scanner{&history})
	if errors.Is(err, sql.ErrNoRows) {
		return inRow, nil
	}
	if err != nil {
		return inRow, fmt.Errorf("load key: %w", err)
	}
	row.Exists, row.State, row.Until, row.Expires = true, idempotency.Status(state), at(until), at(expires)
	row.Result.Size = size.Int64
	row.Result.Omitted = hash != nil
	copy(row.Result.SHA256[:], hash)
	inRow = record.Ledger{
		Exists: attempt.Valid, Attempt: int(attempt.Int64), NotBefore: at(notBefore), Closed: closed.Int64 != 0,
		Expires: row.Expires, // a row and the ledger in it end together
	}
	inRow.History, err = record.DecodeHistory(history)
	return inRow, err
}

func loadRun(tx *sqlitefile.Tx, query string, id record.RunID) (l record.Ledger, err error) {
	var history []byte
	var notBefore, expires sql.NullInt64
	err = tx.QueryRow(query, []any{id.Job, id.Run}, &l.Attempt, &notBefore, &l.Closed, scanner{&history}, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Ledger{}, nil
	}
	if err != nil {
		return record.Ledger{}, fmt.Errorf("load run: %w", err)
	}
	l.Exists, l.NotBefore, l.Expires = true, at(notBefore), at(expires)
	l.History, err = record.DecodeHistory(history)
	return l, err
}

// save writes what change says.
func save(tx *sqlitefile.Tx, r *record.Record, change record.Change) error {
	if change == record.Nothing {
		return nil
	}
	if change == record.All {
		if err := saveRow(tx, r); err != nil {
			return err
		}
	}
	if r.Inline || !r.Run.Exists {
		return nil
	}
	if r.Elsewhere {
		if _, err := tx.Exec(clearElsewhere, r.ID.Job, r.ID.Run); err != nil {
			return fmt.Errorf("move ledger: %w", err)
		}
	}
	return insertRun(tx, r.ID, r.Run)
}

func saveRow(tx *sqlitefile.Tx, r *record.Record) error {
	if r.Displaced.Exists && r.Row.Holder != r.Holder {
		if err := insertRun(tx, r.Holder, r.Displaced); err != nil {
			return err
		}
	}
	var attempt, notBefore, closed, history any
	if r.Inline {
		attempt, notBefore, closed, history = r.Run.Attempt, nanos(r.Run.NotBefore), r.Run.Closed, historyText(r.Run.History)
	}
	row := &r.Row
	var data, size, hash any
	if row.State == idempotency.StatusCompleted {
		data, size, hash = resultColumns(row.Result)
	}
	_, err := tx.Exec(saveKey, r.Key.Value, r.Key.Scope, int(row.State), row.Token, row.Payload, row.Holder.Job, row.Holder.Run, row.Owner,
		nanos(row.Until), nanos(row.Expires), data, size, hash, attempt, notBefore, closed, history)
	if err != nil {
		return fmt.Errorf("save key: %w", err)
	}
	return nil
}

func insertRun(tx *sqlitefile.Tx, id record.RunID, l record.Ledger) error {
	_, err := tx.Exec(saveRun, id.Job, id.Run, l.Attempt, nanos(l.NotBefore), l.Closed, historyText(l.History), nanos(l.Expires))
	if err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	return nil
}

// nanos returns a time as the columns hold it; the zero time is NULL.
func nanos(t time.Time) sql.NullInt64 {
	if t.IsZero() {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixNano(), Valid: true}
}

func at(nanos sql.NullInt64) time.Time {
	if !nanos.Valid {
		return time.Time{}
	}
	return time.Unix(0, nanos.Int64)
}

// historyText returns a history as a TEXT column holds it.
func historyText(history []idempotency.Attempt) any {
	text := record.EncodeHistory(history)
	if text == nil {
		return nil
	}
	return string(text)
}

// resultColumns returns a result as the columns hold it: the data or the hash.
func resultColumns(r idempotency.Result) (data, size, hash any) {
	if r.Omitted {
		return nil, r.Size, r.SHA256[:]
	}
	return r.Data, int64(len(r.Data)), nil
}

// scanner reads a TEXT column that may be NULL.
type scanner struct{ dest *[]byte }

func (s scanner) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*s.dest = nil
	case string:
		*s.dest = []byte(v)
	default:
		return fmt.Errorf("cannot read %T as text", v)
	}
	return nil
}
