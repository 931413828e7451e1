package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// orphanedClaims are claims that may be stored although nobody knows that he holds them: the connection was cut before the answer came and the database
// stayed away, or the caller had stopped waiting. They are given back by their tokens once the database answers, so that no attempt is spent on
// a run that never began. A token that was not used, or was replaced since, matches nothing.
type orphanedClaims struct {
	mu   sync.Mutex
	list []orphanedClaim
	next time.Time // of the next try to give them back
}

type orphanedClaim struct {
	held  idempotency.Handle
	until time.Time // a claim that is stored later than that has not been held for its lease by anybody
}

// orphanPause is how long what was not found is left alone: it may still be on its way.
const orphanPause = time.Second

// failed notes the claims of a batch that may be stored although they were answered with an error.
func (s *orphanedClaims) failed(items []item) {
	for _, i := range items {
		if q := i.request; q != nil && errors.Is(q.claim.Err, idempotency.ErrUnavailable) {
			s.add(q, append(q.tried, q.token)...)
		}
	}
}

// abandoned notes the claims that were acquired for callers who have left.
func (s *orphanedClaims) abandoned(items []item) {
	for _, i := range items {
		if q := i.request; q != nil && q.claim.Status == idempotency.StatusAcquired {
			s.add(q, q.claim.Token)
		}
	}
}

func (s *orphanedClaims) add(q *request, tokens ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokens {
		if token != 0 {
			s.list = append(s.list, orphanedClaim{idempotency.Handle{Key: q.Key, Job: q.Job, Run: q.Run, Token: token}, time.Now().Add(q.Lease)})
		}
	}
	s.next = time.Time{}
}

// take returns those that are to be given back now.
func (s *orphanedClaims) take(now time.Time) []orphanedClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || now.Before(s.next) {
		return nil
	}
	list := s.list
	s.list, s.next = nil, now.Add(orphanPause)
	return list
}

// keep puts some back, for the next batch or for later.
func (s *orphanedClaims) keep(list []orphanedClaim, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.next = append(s.list, list...), next
}

// giveBack abandons orphaned claims. Its error, which wraps [idempotency.ErrUnavailable], says that the database is still away.
func (s *Store) giveBack(ctx context.Context) error {
	now := time.Now()
	list := s.orphans.take(now)
	if len(list) == 0 {
		return nil
	}
	ends := make([]*ending, len(list))
	for i, x := range list {
		e := abandonmentOf(idempotency.Abandonment{Handle: x.held})
		e.name = nameOf(e.Key, e.Job, e.Run)
		ends[i] = &e
	}
	err := s.rewriteEnds(ctx, ends, false)
	if err != nil && pgdb.Unreached(err) {
		s.orphans.keep(list, now)
		return unavailable(err)
	}
	var later []orphanedClaim
	for i, x := range list {
		if err == nil && ends[i].err != nil && now.Before(x.until) {
			later = append(later, x)
		}
	}
	s.orphans.keep(later, now.Add(orphanPause))
	return nil // what the database refuses runs out by itself
}
