package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/sqlitefile"
)

// runID names a ledger entry.
type runID struct {
	job string
	run int
}

// keyRow is a row of caisson_keys without its ledger.
type keyRow struct {
	exists  bool
	state   idempotency.Status
	token   int64
	payload []byte
	holder  runID
	owner   string
	until   sql.NullInt64
	expires sql.NullInt64
	result  idempotency.Result
}

// ledger is the ledger entry of one run, wherever it is kept.
type ledger struct {
	exists    bool
	attempt   int
	notBefore sql.NullInt64
	closed    bool
	history   []idempotency.Attempt
	expires   sql.NullInt64
}

// records is what one operation works on: a key's row and the ledger entry of one run.
type records struct {
	key idempotency.Key
	id  runID
	row keyRow
	run ledger
	// inline says that run is kept in the key's row.
	inline bool
	// displaced is the ledger of the row's holder if that is not id: the row must give it up before id may hold it.
	displaced ledger
	// elsewhere says that run is kept in the row of another key.
	elsewhere bool
}

// load reads the key's row and the ledger entry of id; of the key's holder if id is empty.
func load(tx *sqlitefile.Tx, key idempotency.Key, id runID) (*records, error) {
	r := &records{key: key, id: id}
	inRow, err := r.loadKey(tx)
	if err != nil {
		return nil, err
	}
	if id == (runID{}) {
		r.id = r.row.holder
	}
	if inRow.exists && r.row.holder == r.id {
		r.run, r.inline = inRow, true
		return r, nil
	}
	r.displaced = inRow
	if r.run, err = scanRun(tx, selectRun, r.id); err != nil || r.run.exists {
		return r, err
	}
	r.run, err = scanRun(tx, selectElsewhere, r.id)
	r.elsewhere = r.run.exists
	return r, err
}

func (r *records) loadKey(tx *sqlitefile.Tx) (inRow ledger, err error) {
	var size, attempt, closed sql.NullInt64
	var hash, history []byte
	var state int
	row := &r.row
	err = tx.QueryRow(selectKey, []any{r.key.Value, r.key.Scope},
		&state, &row.token, &row.payload, &row.holder.job, &row.holder.run, &row.owner, &row.until, &row.expires, &row.result.Data, &size, &hash,
		&attempt, &inRow.notBefore, &closed, scanner{&history})
	if errors.Is(err, sql.ErrNoRows) {
		return inRow, nil
	}
	if err != nil {
		return inRow, fmt.Errorf("load key: %w", err)
	}
	row.exists, row.state = true, idempotency.Status(state)
	row.result.Size = size.Int64
	row.result.Omitted = hash != nil
	copy(row.result.SHA256[:], hash)
	inRow.exists, inRow.attempt, inRow.closed = attempt.Valid, int(attempt.Int64), closed.Int64 != 0
	inRow.expires = row.expires // a row and the ledger in it end together
	inRow.history, err = decodeHistory(history)
	return inRow, err
}

func scanRun(tx *sqlitefile.Tx, query string, id runID) (l ledger, err error) {
	var history []byte
	err = tx.QueryRow(query, []any{id.job, id.run}, &l.attempt, &l.notBefore, &l.closed, scanner{&history}, &l.expires)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger{}, nil
	}
	if err != nil {
		return ledger{}, fmt.Errorf("load run: %w", err)
	}
	l.exists = true
	l.history, err = decodeHistory(history)
	return l, err
}

// save writes the key's row, and the ledger entry if there is one.
func (r *records) save(tx *sqlitefile.Tx) error {
	var attempt, notBefore, closed, history any
	if r.inline {
		attempt, notBefore, closed, history = r.run.attempt, r.run.notBefore, r.run.closed, encodeHistory(r.run.history)
	}
	row := &r.row
	var data, size, hash any
	if row.state == idempotency.Completed {
		data, size, hash = resultColumns(row.result)
	}
	_, err := tx.Exec(saveKey, r.key.Value, r.key.Scope, int(row.state), row.token, row.payload, row.holder.job, row.holder.run, row.owner,
		row.until, row.expires, data, size, hash, attempt, notBefore, closed, history)
	if err != nil {
		return fmt.Errorf("save key: %w", err)
	}
	if r.inline {
		return nil
	}
	return r.saveRun(tx)
}

// saveRun writes the ledger entry to the table of runs, wherever it was before.
func (r *records) saveRun(tx *sqlitefile.Tx) error {
	if !r.run.exists {
		return nil
	}
	if r.elsewhere {
		if _, err := tx.Exec(clearElsewhere, r.id.job, r.id.run); err != nil {
			return fmt.Errorf("move ledger: %w", err)
		}
	}
	return insertRun(tx, r.id, r.run)
}

func insertRun(tx *sqlitefile.Tx, id runID, l ledger) error {
	if _, err := tx.Exec(saveRun, id.job, id.run, l.attempt, l.notBefore, l.closed, encodeHistory(l.history), l.expires); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	return nil
}

// resultColumns returns a result as the columns hold it: the data or the hash.
func resultColumns(r idempotency.Result) (data, size, hash any) {
	if r.Omitted {
		return nil, r.Size, r.SHA256[:]
	}
	return r.Data, int64(len(r.Data)), nil
}

func encodeHistory(history []idempotency.Attempt) any {
	if len(history) == 0 {
		return nil
	}
	text, err := json.Marshal(history)
	if err != nil {
		return nil // a year beyond 9999 in a caller's time: the count stands without it
	}
	return string(text)
}

func decodeHistory(text []byte) (history []idempotency.Attempt, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &history); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return history, nil
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
