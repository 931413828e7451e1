package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// errCollision means that two different keys have the same id. SHA-256 keeps that from happening.
var errCollision = errors.New("another key or job has the same hash: choose another key")

// rowSet holds the rows that a batch works on. Its items change them one after the other, and what changed is saved at the end.
type rowSet struct {
	now    time.Time
	newest int32 // the generation for rows that are needed; 0 leaves rows where they are
	keys   map[id]*keyRow
	runs   map[id]*runRow
	values map[prefix][]*keyRow // the same keys by their value
}

func newRowSet() *rowSet {
	return &rowSet{keys: map[id]*keyRow{}, runs: map[id]*runRow{}, values: map[prefix][]*keyRow{}}
}

// span is a range of ids.
type span struct{ first, last id }

func less(a, b id) int { return slices.Compare(a[:], b[:]) }

// load adds statements to t that read all rows which names are about, locked if keys and runs say so. Rows are asked for in the
// order of their ids, so that batches do not wait for each other in a circle.
func (b *rowSet) load(ctx context.Context, t *roundTrip, names []name, keys, runs *statement) error {
	var spans []span
	var ids []id
	for k := range names {
		n := &names[k]
		spans = append(spans, span{n.job.first(), n.job.last()})
		if !n.inline() {
			spans = append(spans, span{n.keyID, n.keyID})
		}
		ids = append(ids, n.runID)
	}
	slices.SortFunc(spans, func(x, y span) int { return less(x.first, y.first) })
	spans = slices.Compact(spans)
	slices.SortFunc(ids, less)
	ids = slices.Compact(ids)

	var forKeys, forRuns values
	uuids(&forKeys, spans, func(s *span) id { return s.first })
	uuids(&forKeys, spans, func(s *span) id { return s.last })
	uuids(&forRuns, ids, func(i *id) id { return *i })
	if err := t.add(ctx, keys, forKeys, b.readKey); err != nil {
		return err
	}
	return t.add(ctx, runs, forRuns, b.readRun)
}

func (b *rowSet) readKey(c [][]byte) error {
	row, err := readKeyRow(c)
	if err == nil && b.keys[row.id] == nil {
		b.addKey(row)
	}
	return err
}

func (b *rowSet) addKey(row *keyRow) {
	b.keys[row.id] = row
	p := row.id.prefix()
	b.values[p] = append(b.values[p], row)
}

func (b *rowSet) readRun(c [][]byte) error {
	row, err := readRunRow(c)
	if err == nil {
		b.runs[row.id] = row
	}
	return err
}

// readNow reads the result of the statement now.
func (b *rowSet) readNow(c [][]byte) error {
	b.now, b.newest = time.UnixMicro(readInt(c[0])), int32(readInt(c[1])) //nolint:gosec // the column is int4
	return nil
}

// record returns what n is about, as one operation sees it.
func (b *rowSet) record(n *name) (*record.Record, error) {
	r := &record.Record{Key: n.key, ID: n.run}
	if row := b.keys[n.keyID]; row != nil {
		if row.key != n.key {
			return nil, fmt.Errorf("key %q: %w", n.key.Value, errCollision)
		}
		r.Row = row.Row
		if row.ledger.Exists && row.Holder == r.ID {
			r.Run, r.Inline = row.ledger, true
			return r, nil
		}
		r.Displaced, r.Holder = row.ledger, row.Holder
	}
	if row := b.runs[n.runID]; row != nil {
		if row.run != n.run {
			return nil, fmt.Errorf("job %q: %w", n.run.Job, errCollision)
		}
		r.Run = row.Ledger
		return r, nil
	}
	if row := b.elsewhere(n); row != nil {
		r.Run, r.Elsewhere = row.ledger, true
	}
	return r, nil
}

// elsewhere returns the row of another key that holds the ledger of n's run.
func (b *rowSet) elsewhere(n *name) *keyRow {
	for _, row := range b.values[n.job] {
		if row.id != n.keyID && row.ledger.Exists && row.Holder == n.run && row.key.Value == n.run.Job {
			return row
		}
	}
	return nil
}

// apply takes back what an operation has changed.
func (b *rowSet) apply(n *name, r *record.Record, change record.Change) {
	if change == record.Nothing {
		return
	}
	if change == record.All {
		b.applyRow(n, r)
	}
	if r.Inline || !r.Run.Exists {
		return
	}
	if r.Elsewhere {
		row := b.elsewhere(n)
		row.ledger, row.dirty = record.Ledger{}, true
	}
	b.applyRun(n.runID, n.run, r.Run, false)
}

func (b *rowSet) applyRow(n *name, r *record.Record) {
	row := b.keys[n.keyID]
	if row == nil {
		row = &keyRow{place: place{id: n.keyID}, key: n.key}
		b.addKey(row)
	}
	if r.Displaced.Exists && r.Row.Holder != r.Holder {
		holder := nameOf(idempotency.Key{}, r.Holder.Job, r.Holder.Run)
		b.applyRun(holder.runID, r.Holder, r.Displaced, true)
	}
	row.Row, row.ledger, row.dirty = r.Row, record.Ledger{}, true
	if r.Inline {
		row.ledger = r.Run
	}
	row.move(b.newest, row.Expires, b.now)
}

func (b *rowSet) applyRun(at id, run record.RunID, l record.Ledger, displaced bool) {
	row := b.runs[at]
	if row == nil {
		row = &runRow{place: place{id: at}, run: run, displaced: displaced}
		b.runs[at] = row
	}
	row.Ledger, row.dirty = l, true
	row.move(b.newest, l.Expires, b.now)
}

// save adds statements to t that write what changed.
func (b *rowSet) save(ctx context.Context, t *roundTrip) error {
	var savedKeys, addedKeys []*keyRow
	for _, row := range b.keys {
		switch {
		case row.dirty && row.gen != 0:
			savedKeys = append(savedKeys, row)
		case row.dirty:
			addedKeys = append(addedKeys, row)
		}
	}
	var savedRuns, addedRuns, keptRuns []*runRow
	for _, row := range b.runs {
		switch {
		case row.dirty && row.gen != 0:
			savedRuns = append(savedRuns, row)
		case row.dirty && row.displaced:
			keptRuns = append(keptRuns, row)
		case row.dirty:
			addedRuns = append(addedRuns, row)
		}
	}
	sql := t.store.sql
	return errors.Join(
		write(ctx, t, &sql.saveKeys, savedKeys, keyValuesOf), write(ctx, t, &sql.addKeys, addedKeys, keyValuesOf),
		write(ctx, t, &sql.saveRuns, savedRuns, runValuesOf), write(ctx, t, &sql.addRuns, addedRuns, runValuesOf),
		write(ctx, t, &sql.keepRuns, keptRuns, runValuesOf),
	)
}

func write[R interface{ where() id }](ctx context.Context, t *roundTrip, st *statement, rows []R, of func([]R) values) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(x, y R) int { return less(x.where(), y.where()) })
	return t.add(ctx, st, of(rows), nil)
}

func (p *place) where() id { return p.id }

// rewrite loads what names are about, lets change work on it and saves it, in one transaction and two round trips.
func (s *Store) rewrite(ctx context.Context, conn *pgx.Conn, names []name, change func(b *rowSet)) error {
	b := newRowSet()
	t := s.roundTrip(conn)
	err := errors.Join(t.begin(ctx), t.lock(ctx), b.load(ctx, t, names, &s.sql.loadKeys, &s.sql.loadRuns),
		t.add(ctx, &s.sql.now, nil, b.readNow))
	if err != nil {
		return err
	}
	if err := t.send(ctx); err != nil {
		return err
	}
	s.clock.see(b.now)
	change(b)
	t = s.roundTrip(conn)
	if err := errors.Join(b.save(ctx, t), t.commit(ctx)); err != nil {
		return err
	}
	return t.send(ctx)
}
