package backends

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/caisson-go/caisson/dlq/brokerdlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	fleetsqlite "github.com/caisson-go/caisson/internal/fleet/sqlite"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
	endpointsqlite "github.com/caisson-go/caisson/webhook/endpoints/sqlite"
	journalsqlite "github.com/caisson-go/caisson/webhook/journal/sqlite"
)

// keepInMemory is keep in memory.
func (s *Set) keepInMemory(ctx context.Context, cfg *config.Config) error {
	statuses, err := fleetsqlite.Open(ctx, fleetsqlite.Config{Path: ":memory:"})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, statuses.Close)
	return s.keep(ctx, cfg, statuses.Path(), "")
}

// keep opens the stores in the file at path: claims and dead letters, as far as cfg wants them there, and the rest.
func (s *Set) keep(ctx context.Context, cfg *config.Config, path, sync string) error {
	if cfg.ClaimStore() != config.StoreNone {
		claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: path, Sync: sync})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, claims.Close)
		s.Claims = claims
	}
	if cfg.DLQBackend() == config.DLQStore {
		letters, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: path, Sync: sync})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, letters.Close)
		s.DeadLetters, s.Letters = letters, letters
	}
	registry, err := endpointsqlite.Open(ctx, endpointsqlite.Config{Path: path, Sync: sync})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, registry.Close)
	events, err := journalsqlite.Open(ctx, journalsqlite.Config{Path: path, Sync: sync})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, events.Close)
	s.Endpoints, s.Journal, s.Queues = registry, events, events
	statuses, err := fleetsqlite.Open(ctx, fleetsqlite.Config{Path: path, Sync: sync})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, statuses.Close)
	s.Statuses = statuses
	return nil
}

// beside completes a networked broker with what lives beside it. It takes the broker over: it is closed with the set, or here after an
// error.
func beside(ctx context.Context, cfg *config.Config, mode Mode, broker queue.Broker, logger *slog.Logger) (*Set, error) {
	s := &Set{Broker: broker}
	err := s.keepBeside(ctx, cfg, mode, logger)
	s.closers = append(s.closers, broker.Close)
	if err == nil {
		err = s.brokerLetters(cfg, logger) //nolint:contextcheck // a mirror lives until the set is closed
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) keepBeside(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) error {
	switch cfg.ClaimStore() {
	case config.StorePostgres:
		return s.keepPostgres(ctx, cfg, logger)
	case config.StoreSQLite:
		return s.keepFile(ctx, cfg, mode)
	}
	return nil
}

// keepFile keeps everything in a file beside a networked broker.
func (s *Set) keepFile(ctx context.Context, cfg *config.Config, mode Mode) error {
	path := cfg.SQLite.Path
	if _, err := os.Stat(path); mode == Existing && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: no file %s yet: start in the worker's directory, or name the file with sqlite.path", path)
	}
	// Full: the broker forgets a message once it is acked, so that its claim or dead letter must outlive a power cut.
	if err := s.keep(ctx, cfg, path, "full"); err != nil {
		return fmt.Errorf("store %s: %w", path, err)
	}
	return nil
}

// brokerLetters keeps dead letters in the broker's own dead-letter queues, or looks after those beside a store.
func (s *Set) brokerLetters(cfg *config.Config, logger *slog.Logger) error {
	c := brokerdlq.Config{Broker: s.Broker, Retention: cfg.DLQ.Retention}
	for _, q := range cfg.Queues {
		c.Queues = append(c.Queues, q.Name)
	}
	letters, err := brokerdlq.New(c)
	if err != nil {
		return err
	}
	if s.Letters == nil {
		s.DeadLetters, s.BrokerDLQ = letters, letters
		return nil
	}
	s.Sweeper = letters
	if cfg.DLQ.Mirror != config.DLQBroker {
		return nil
	}
	if s.Mirror, err = brokerdlq.NewMirror(brokerdlq.MirrorConfig{Store: s.Letters, Queues: letters, Logger: logger}); err != nil {
		return err
	}
	s.DeadLetters = s.Mirror
	s.closers = append(s.closers, s.Mirror.Close)
	return nil
}
