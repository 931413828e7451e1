package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
)

// item is one call's part in a batch: a request or an ending.
type item struct {
	request *request
	ending  *ending
}

func (i item) fail(err error) {
	if i.request != nil {
		i.request.claim = idempotency.Claim{Err: fmt.Errorf("claim: %w", err)}
	} else {
		i.ending.err = fmt.Errorf("end claim: %w", err)
	}
}

// answerBatch answers one batch. If the database refuses what one item holds, each that has no answer yet is tried alone, so that it fails alone.
func (s *Store) answerBatch(items []item) {
	ctx, cancel := s.batchContext()
	defer cancel()
	defer func() { s.orphans.failed(items) }()
	left, err := items, s.giveBack(ctx)
	if err == nil {
		left, err = s.answer(ctx, items)
	}
	if len(items) > 1 && refused(err) {
		for k := range left {
			if _, err := s.answer(ctx, left[k:k+1]); err != nil {
				left[k].fail(classify(err))
			}
		}
		return
	}
	if err != nil {
		for _, i := range left {
			i.fail(classify(err))
		}
	}
}

// answer answers items: most in one round trip, the rest one after the other in a transaction. What is committed is answered: beside an error
// it returns the others.
func (s *Store) answer(ctx context.Context, items []item) (left []item, err error) {
	var reqs []*request
	var ends []*ending
	for _, i := range items {
		if i.request != nil {
			reqs = append(reqs, i.request)
		} else {
			ends = append(ends, i.ending)
		}
	}
	fresh, reqs := split(reqs)
	fast, ends := splitEnds(ends)
	lost := false
	if len(fresh)+len(fast) > 0 {
		var known []*request
		var missed []*ending
		err := s.repeat(ctx, func(conn *pgx.Conn, again bool) (err error) {
			if lost = again; lost {
				known, missed = fresh, fast // the rows tell what the cut connection has left
				return nil
			}
			known, missed, err = s.fast(ctx, conn, fresh, fast)
			return err
		})
		if err != nil {
			return items, err
		}
		reqs, ends = append(known, reqs...), append(missed, ends...)
	}
	if len(ends) > 0 {
		if err := s.rewriteEnds(ctx, ends, lost); err != nil {
			return itemsOf(reqs, ends), err
		}
	}
	if len(reqs) > 0 {
		if err := s.rewriteClaims(ctx, reqs); err != nil {
			return itemsOf(reqs, nil), err
		}
	}
	return nil, nil
}

func itemsOf(reqs []*request, ends []*ending) []item {
	items := make([]item, 0, len(reqs)+len(ends))
	for _, e := range ends {
		items = append(items, item{ending: e})
	}
	for _, q := range reqs {
		items = append(items, item{request: q})
	}
	return items
}

// fast answers in one round trip and one commit, and returns those that it could not answer. Rows are locked before any is inserted, as in
// rewrite.
func (s *Store) fast(ctx context.Context, conn *pgx.Conn, reqs []*request, ends []*ending) (known []*request, missed []*ending, err error) {
	t := s.roundTrip(conn)
	if err := errors.Join(t.begin(ctx), t.add(ctx, &s.sql.guard, nil, nil)); err != nil {
		return nil, nil, err
	}
	found, err := t.addEnds(ctx, ends)
	if err != nil {
		return nil, nil, err
	}
	var fresh *freshAnswer
	if len(reqs) > 0 {
		err = t.add(ctx, &s.sql.lock, nil, nil)
		if err == nil {
			fresh, err = t.addFresh(ctx, reqs)
		}
	}
	if err := errors.Join(err, t.commit(ctx)); err != nil {
		return nil, nil, err
	}
	if err := t.send(ctx); err != nil {
		return nil, nil, err
	}
	if fresh != nil {
		s.clock.see(fresh.now)
		known = fresh.answer(reqs)
	}
	return known, found(), nil
}

// rewriteEnds ends claims one after the other. again says that they may have been stored before.
func (s *Store) rewriteEnds(ctx context.Context, ends []*ending, again bool) error {
	names := make([]name, len(ends))
	for k, e := range ends {
		names[k] = e.name
	}
	return s.repeat(ctx, func(conn *pgx.Conn, cut bool) error {
		return s.rewrite(ctx, conn, names, func(b *rowSet) {
			for _, e := range ends {
				e.rewrite(b, again || cut)
			}
		})
	})
}
