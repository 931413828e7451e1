package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// strays are claims that may be stored although nobody knows that he holds them: the connection was cut before the answer came and the database
// stayed away, or the caller had stopped waiting. They are given back by their tokens once the database answers, so that no attempt is spent on
// a run that never began. A token that was not used, or was replaced since, matches nothing.
type strays struct {
	mu   sync.Mutex
	list []stray
	next time.Time // of the next try to give them back
}

type stray struct {
	held  idempotency.Held
	until time.Time // a claim that is stored later than that has not been held for its lease by anybody
}

// strayPause is how long what was not found is left alone: it may still be on its way.
const strayPause = time.Second

// failed notes the claims of a flight that may be stored although they were answered with an error.
func (s *strays) failed(items []item) {
	for _, i := range items {
		if q := i.request; q != nil && errors.Is(q.claim.Err, idempotency.ErrUnavailable) {
			s.add(q, append(q.tried, q.token)...)
		}
	}
}

// landed notes the claims that were acquired for callers who have left.
func (s *strays) landed(items []item) {
	for _, i := range items {
		if q := i.request; q != nil && q.claim.Status == idempotency.StatusAcquired {
			s.add(q, q.claim.Token)
		}
	}
}

func (s *strays) add(q *request, tokens ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokens {
		if token != 0 {
			s.list = append(s.list, stray{idempotency.Held{Key: q.Key, Job: q.Job, Run: q.Run, Token: token}, time.Now().Add(q.Lease)})
		}
	}
	s.next = time.Time{}
}

// take returns those that are to be given back now.
func (s *strays) take(now time.Time) []stray {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || now.Before(s.next) {
		return nil
	}
	list := s.list
	s.list, s.next = nil, now.Add(strayPause)
	return list
}

// keep puts some back, for the next flight or for later.
func (s *strays) keep(list []stray, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.next = append(s.list, list...), next
}

// giveBack abandons strays. Its error, which wraps [idempotency.ErrUnavailable], says that the database is still away.
func (s *Store) giveBack(ctx context.Context) error {
	now := time.Now()
	list := s.strays.take(now)
	if len(list) == 0 {
		return nil
	}
	ends := make([]*ending, len(list))
	for i, x := range list {
		e := abandonmentOf(idempotency.Abandonment{Held: x.held})
		e.name = nameOf(e.Key, e.Job, e.Run)
		ends[i] = &e
	}
	err := s.rewriteEnds(ctx, ends, false)
	if err != nil && pgdb.Unreached(err) {
		s.strays.keep(list, now)
		return unavailable(err)
	}
	var later []stray
	for i, x := range list {
		if err == nil && ends[i].err != nil && now.Before(x.until) {
			later = append(later, x)
		}
	}
	s.strays.keep(later, now.Add(strayPause))
	return nil // what the database refuses runs out by itself
}
