package postgres

import (
	"bytes"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// keyRow is a row of claims. Its ledger is the holder's if it lies in the row.
type keyRow struct {
	place
	key idempotency.Key
	record.Row
	ledger record.Ledger
}

// runRow is a row of runs.
type runRow struct {
	place
	run record.RunID
	record.Ledger
	displaced bool // it lay in a key's row until now
}

// place is where a row lies and whether it must be written.
type place struct {
	id     id
	gen    int32 // 0 for a row that is not stored yet
	newGen int32
	dirty  bool
}

// readKeyRow reads the key columns.
func readKeyRow(c [][]byte) (row *keyRow, err error) {
	row = &keyRow{place: placeOf(c), key: idempotency.Key{Scope: string(c[2]), Value: string(c[3])}}
	row.Row = record.Row{
		Exists: true, State: idempotency.Status(readInt(c[4])), Token: readInt(c[5]), Payload: bytes.Clone(c[6]), //nolint:gosec // a Status
		Holder: record.RunID{Job: row.key.Value, Run: int(readInt(c[8]))}, Owner: string(c[9]), Until: readTime(c[10]), Expires: readTime(c[11]),
	}
	if c[7] != nil {
		row.Holder.Job = string(c[7])
	}
	if row.State == idempotency.StatusCompleted {
		row.Result = idempotency.Result{Data: bytes.Clone(c[12]), Size: int64(len(c[12])), Omitted: c[14] != nil}
		if row.Result.Omitted {
			row.Result.Size = readInt(c[13])
			copy(row.Result.SHA256[:], c[14])
		}
	}
	if c[15] == nil {
		return row, nil
	}
	row.ledger = record.Ledger{
		Exists: true, Attempt: int(readInt(c[15])), NotBefore: readTime(c[16]), Closed: readBool(c[17]),
		Expires: row.Expires, // a row and the ledger in it end together
	}
	if row.ledger.History, err = record.DecodeHistory(c[18]); err != nil {
		return nil, fmt.Errorf("key %q: %w", row.key.Value, err)
	}
	return row, nil
}

// readRunRow reads the run columns.
func readRunRow(c [][]byte) (row *runRow, err error) {
	row = &runRow{place: placeOf(c), run: record.RunID{Job: string(c[2]), Run: int(readInt(c[3]))}}
	row.Ledger = record.Ledger{
		Exists: true, Attempt: int(readInt(c[4])), NotBefore: readTime(c[5]), Closed: readBool(c[6]), Expires: readTime(c[8]),
	}
	if row.History, err = record.DecodeHistory(c[7]); err != nil {
		return nil, fmt.Errorf("job %q: %w", row.run.Job, err)
	}
	return row, nil
}

func placeOf(c [][]byte) place {
	gen := int32(readInt(c[0])) //nolint:gosec // the column is int4
	return place{id: id(c[1]), gen: gen, newGen: gen}
}

// move puts a row that is needed into the newest generation. 0 leaves it where it is.
func (p *place) move(newest int32, expires, now time.Time) {
	if newest != 0 && (p.gen == 0 || expires.IsZero() || expires.After(now)) {
		p.newGen = newest
	}
}

func keyValuesOf(rows []*keyRow) (v values) {
	type row = *keyRow
	int4s(&v, rows, func(r *row) (int32, bool) { return (*r).gen, false })
	int4s(&v, rows, func(r *row) (int32, bool) { return (*r).newGen, false })
	uuids(&v, rows, func(r *row) id { return (*r).id })
	byteas(&v, rows, func(r *row) (string, bool) { return (*r).key.Scope, false })
	byteas(&v, rows, func(r *row) (string, bool) { return (*r).key.Value, false })
	int4s(&v, rows, func(r *row) (int32, bool) { return int32((*r).State), false })
	int8s(&v, rows, pgtype.Int8OID, func(r *row) (int64, bool) { return (*r).Token, false })
	byteas(&v, rows, func(r *row) ([]byte, bool) { return (*r).Payload, (*r).Payload == nil })
	byteas(&v, rows, func(r *row) (string, bool) { return (*r).Holder.Job, (*r).Holder.Job == (*r).key.Value })
	int4s(&v, rows, func(r *row) (int32, bool) { return int32((*r).Holder.Run), false }) //nolint:gosec // checked by the caller
	byteas(&v, rows, func(r *row) (string, bool) { return (*r).Owner, false })
	times(&v, rows, func(r *row) time.Time { return (*r).Until })
	times(&v, rows, func(r *row) time.Time { return (*r).Expires })
	byteas(&v, rows, func(r *row) ([]byte, bool) { return resultData(&(*r).Result) })
	int8s(&v, rows, pgtype.Int8OID, func(r *row) (int64, bool) { return (*r).Result.Size, !(*r).Result.Omitted })
	byteas(&v, rows, func(r *row) ([]byte, bool) { return resultHash(&(*r).Result) })
	int4s(&v, rows, func(r *row) (int32, bool) { return int32((*r).ledger.Attempt), !(*r).ledger.Exists }) //nolint:gosec // see above
	times(&v, rows, func(r *row) time.Time { return (*r).ledger.NotBefore })
	bools(&v, rows, func(r *row) bool { return (*r).ledger.Closed })
	byteas(&v, rows, func(r *row) ([]byte, bool) { return historyBytes((*r).ledger.History) })
	return v
}

func runValuesOf(rows []*runRow) (v values) {
	type row = *runRow
	int4s(&v, rows, func(r *row) (int32, bool) { return (*r).gen, false })
	int4s(&v, rows, func(r *row) (int32, bool) { return (*r).newGen, false })
	uuids(&v, rows, func(r *row) id { return (*r).id })
	byteas(&v, rows, func(r *row) (string, bool) { return (*r).run.Job, false })
	int4s(&v, rows, func(r *row) (int32, bool) { return int32((*r).run.Run), false }) //nolint:gosec // checked by the caller
	int4s(&v, rows, func(r *row) (int32, bool) { return int32((*r).Attempt), false }) //nolint:gosec // see above
	times(&v, rows, func(r *row) time.Time { return (*r).NotBefore })
	bools(&v, rows, func(r *row) bool { return (*r).Closed })
	byteas(&v, rows, func(r *row) ([]byte, bool) { return historyBytes((*r).History) })
	times(&v, rows, func(r *row) time.Time { return (*r).Expires })
	return v
}

// resultData and resultHash return a result as the columns hold it: the data or the hash.
func resultData(r *idempotency.Result) (data []byte, null bool) { return r.Data, len(r.Data) == 0 }

func resultHash(r *idempotency.Result) (hash []byte, null bool) { return r.SHA256[:], !r.Omitted }

func historyBytes(history []idempotency.Attempt) (text []byte, null bool) {
	text = record.EncodeHistory(history)
	return text, text == nil
}
