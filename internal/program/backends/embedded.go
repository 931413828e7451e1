package backends

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue/embedded"
)

// openEmbedded opens queue, claims and dead letters on one file, so that they share its commits.
func openEmbedded(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) (*Set, error) {
	if _, err := os.Stat(cfg.Embedded.Path); mode == Existing && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("embedded queue: no file %s yet: start in the worker's directory, or name the file with --db or embedded.path", cfg.Embedded.Path)
	}
	at := embedded.Config{Path: cfg.Embedded.Path, Sync: cfg.Embedded.Sync}
	return onFile(ctx, cfg, at, func(s *Set) error { return s.keepPostgres(ctx, cfg, logger) })
}

func offlineEmbedded(ctx context.Context, cfg *config.Config) (*Set, error) {
	return onFile(ctx, cfg, embedded.Config{Path: ":memory:"}, func(s *Set) error { return s.offlinePostgres(ctx, cfg) })
}

// onFile opens the queue, and the stores in its file. postgres keeps claims and dead letters where they are not there.
func onFile(ctx context.Context, cfg *config.Config, at embedded.Config, postgres func(*Set) error) (*Set, error) {
	broker, err := embedded.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	s := &Set{Broker: broker, closers: []func() error{broker.Close}}
	if cfg.ClaimStore() == config.StorePostgres {
		err = postgres(s)
	} else {
		err = s.keep(ctx, cfg, broker.Path(), "")
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
