package postgres

import (
	"github.com/caisson-go/caisson/webhook/journal"
)

// Begins and queries of lists, to be explained.
func (s *Store) ListAttempts(f journal.AttemptFilter, after string) (begin, query string, args []any, err error) {
	return s.listAttempts(f, after, 51)
}

func (s *Store) ListEvents(f journal.EventFilter, after string) (begin, query string, args []any, err error) {
	query, args, err = s.listEvents(f, after, 51)
	return beginPage, query, args, err
}

func (s *Store) ListTried() (begin, query string) { return beginRead, s.sql.selectTried }
