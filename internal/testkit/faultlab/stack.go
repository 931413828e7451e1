package faultlab

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
)

// Stack is a broker with claims and dead letters beside it.
type Stack struct {
	Broker queue.Broker
	Claims idempotency.Store
	Dead   dlq.Store

	effects string        // the table that transactional handlers write to; empty if there is none
	pool    *pgxpool.Pool // of that table
	closers []func() error
}

// Close closes the broker, then the file of the stores.
func (s *Stack) Close() error {
	var errs []error
	for _, closer := range s.closers {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// Stores are claims and dead letters that do not live in a file.
type Stores struct {
	Claims idempotency.Store
	Dead   dlq.Store
	// Close closes both.
	Close func() error
}

// Opener opens a stack for the processes that share dir. where tells which broker, in the words of whoever wrote the opener.
type Opener func(ctx context.Context, dir, where string) (*Stack, error)

// Embedded is an [Opener] with queue, claims and dead letters in one file.
func Embedded(ctx context.Context, dir, _ string) (*Stack, error) {
	broker, err := embedded.Open(ctx, embedded.Config{Path: filepath.Join(dir, "caisson.db")})
	if err != nil {
		return nil, err
	}
	s := &Stack{Broker: broker, closers: []func() error{broker.Close}}
	if err := s.addStores(ctx, broker.Path()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Beside makes an [Opener] of what opens a networked broker: claims and dead letters are in a file in dir.
func Beside(open func(ctx context.Context, where string) (queue.Broker, error)) Opener {
	return func(ctx context.Context, dir, where string) (*Stack, error) {
		broker, err := open(ctx, where)
		if err != nil {
			return nil, err
		}
		s := &Stack{Broker: broker, closers: []func() error{broker.Close}}
		if err := s.addStores(ctx, filepath.Join(dir, "stores.db")); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
}

func (s *Stack) addStores(ctx context.Context, path string) error {
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: path})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, claims.Close)
	dead, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: path})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, dead.Close)
	s.Claims, s.Dead = claims, dead
	return nil
}
