package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// ending is one write on a held claim.
type ending struct {
	idempotency.Handle
	name   name
	kind   endKind
	length time.Duration // lease, retention or delay
	result idempotency.Result
	change func(now time.Time, r *record.Record) (record.Change, error)
	err    error
}

type endKind uint8

const (
	extends endKind = iota
	completes
	abandons
	fails
)

// fast says that one statement can do it where the ledger lies in the key's row.
func (e *ending) fast() bool { return e.kind != fails && (e.kind == extends || e.name.inline()) }

// Extend prolongs claims.
func (s *Store) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	return end(ctx, s, exts, func(x idempotency.Extension) ending {
		e := ending{Handle: x.Handle, kind: extends, length: x.Lease, change: func(now time.Time, r *record.Record) (record.Change, error) {
			return r.Extend(now.Add(x.Lease), x.Handle)
		}}
		if x.Lease <= 0 {
			e.err = fmt.Errorf("%w: extension by %v must be positive", idempotency.ErrClaimLost, x.Lease)
		}
		return e
	})
}

// Complete closes claims with success.
func (s *Store) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	return end(ctx, s, comps, completionOf)
}

func completionOf(c idempotency.Completion) ending {
	if c.Retention == 0 {
		c.Retention = idempotency.DefaultRetention
	}
	c.Result = c.Result.Capped()
	return ending{
		Handle: c.Handle, kind: completes, length: c.Retention, result: c.Result,
		change: func(now time.Time, r *record.Record) (record.Change, error) { return r.Complete(now, c) },
	}
}

// Abandon gives claims back with no attempt spent.
func (s *Store) Abandon(ctx context.Context, abs []idempotency.Abandonment) []error {
	return end(ctx, s, abs, abandonmentOf)
}

func abandonmentOf(a idempotency.Abandonment) ending {
	return ending{Handle: a.Handle, kind: abandons, length: a.Delay, change: func(now time.Time, r *record.Record) (record.Change, error) {
		return r.Abandon(now, a)
	}}
}

// Fail ends claims after a failed attempt.
func (s *Store) Fail(ctx context.Context, failures []idempotency.Failure) []error {
	return end(ctx, s, failures, func(f idempotency.Failure) ending {
		return ending{Handle: f.Handle, kind: fails, change: func(now time.Time, r *record.Record) (record.Change, error) {
			return r.Fail(now, f)
		}}
	})
}

// end answers a batch of writes on claims.
func end[T any](ctx context.Context, s *Store, items []T, of func(T) ending) []error {
	errs := make([]error, len(items))
	asked := make([]*ending, len(items))
	valid := make([]item, 0, len(items))
	for i := range items {
		e := of(items[i])
		if e.err == nil && (e.Run < 0 || e.Run > maxRun) {
			e.err = record.Lost(e.Handle) // no claim was ever given to such a run
		}
		if errs[i] = e.err; e.err == nil {
			e.name = nameOf(e.Key, e.Job, e.Run)
			asked[i] = &e
			valid = append(valid, item{ending: &e})
		}
	}
	if len(valid) == 0 {
		return errs
	}
	err := s.lane.do(ctx, valid)
	for i, e := range asked {
		switch {
		case e == nil:
		case err != nil:
			errs[i] = fmt.Errorf("end claim: %w", err)
		default:
			errs[i] = e.err
		}
	}
	return errs
}

// splitEnds returns the writes that one statement may do, sorted by id, and the others in order.
func splitEnds(ends []*ending) (fast, rest []*ending) {
	fast = make([]*ending, 0, len(ends))
	seen := make(map[prefix]struct{}, len(ends))
	for _, e := range ends {
		value := e.name.keyID.prefix()
		_, taken := seen[value]
		seen[value], seen[e.name.job] = struct{}{}, struct{}{}
		if e.fast() && !taken {
			fast = append(fast, e)
		} else {
			rest = append(rest, e)
		}
	}
	slices.SortFunc(fast, func(a, b *ending) int { return less(a.name.keyID, b.name.keyID) })
	return fast, rest
}

// addEnds adds the writes to t. missed returns those whose row was not as expected, after t was sent.
func (t *roundTrip) addEnds(ctx context.Context, ends []*ending) (missed func() []*ending, err error) {
	var found []*ending
	sql := t.store.sql
	for kind, st := range []*statement{extends: &sql.extend, completes: &sql.complete, abandons: &sql.abandon} {
		group := ofKind(ends, endKind(kind)) //nolint:gosec // three kinds
		if len(group) == 0 {
			continue
		}
		read := func(c [][]byte) error {
			if c[0] == nil {
				return nil
			}
			done := readIDs(c[0])
			slices.SortFunc(done, less)
			for _, e := range group {
				if _, ok := slices.BinarySearchFunc(done, e.name.keyID, less); !ok {
					found = append(found, e)
				}
			}
			return nil
		}
		if err := t.add(ctx, st, endValues(group, endKind(kind)), read); err != nil { //nolint:gosec // three kinds
			return nil, err
		}
	}
	return func() []*ending { return found }, nil
}

func ofKind(ends []*ending, kind endKind) (group []*ending) {
	for _, e := range ends {
		if e.kind == kind {
			group = append(group, e)
		}
	}
	return group
}

func endValues(ends []*ending, kind endKind) (v values) {
	type item = *ending
	uuids(&v, ends, func(e *item) id { return (*e).name.keyID })
	int8s(&v, ends, pgtype.Int8OID, func(e *item) (int64, bool) { return (*e).Token, false })
	int4s(&v, ends, func(e *item) (int32, bool) { return int32((*e).Run), false }) //nolint:gosec // checked by end
	byteas(&v, ends, func(e *item) (string, bool) { return (*e).Job, (*e).name.inline() })
	int8s(&v, ends, pgtype.Int8OID, func(e *item) (int64, bool) { return (*e).length.Microseconds(), false })
	if kind == completes {
		byteas(&v, ends, func(e *item) ([]byte, bool) { return resultData(&(*e).result) })
		int8s(&v, ends, pgtype.Int8OID, func(e *item) (int64, bool) { return (*e).result.Size, !(*e).result.Omitted })
		byteas(&v, ends, func(e *item) ([]byte, bool) { return resultHash(&(*e).result) })
	}
	return v
}

// rewrite does one write on the rows. again says that it may have been stored before.
func (e *ending) rewrite(b *rowSet, again bool) {
	r, err := b.record(&e.name)
	if err != nil {
		e.err = err
		return
	}
	change, err := e.change(b.now, r)
	if again && errors.Is(err, idempotency.ErrClaimLost) && (e.kind == abandons || e.kind == fails) && r.Ended(e.Handle) {
		err = nil
	}
	e.err = err
	b.apply(&e.name, r, change)
}
