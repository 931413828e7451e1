package backends

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue/embedded"
)

// openEmbedded opens queue, claims and dead letters on one file, so that they share its commits.
func openEmbedded(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) (*Set, error) {
	if _, err := os.Stat(cfg.Embedded.Path); mode == Existing && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("embedded queue: no file %s yet: start in the worker's directory, or name the file with --db or embedded.path", cfg.Embedded.Path)
	}
	sync, err := sqlitefile.ParseSync(cfg.Embedded.Sync)
	if err != nil {
		return nil, fmt.Errorf("embedded.sync: %w", err)
	}
	file, err := sqlitefile.Open(ctx, sqlitefile.Config{Path: cfg.Embedded.Path, Sync: sync})
	if err != nil {
		return nil, fmt.Errorf("embedded queue %s: %w", cfg.Embedded.Path, err)
	}
	return onFile(ctx, cfg, file, func(s *Set) error { return s.keepPostgres(ctx, cfg, logger) })
}

func offlineEmbedded(ctx context.Context, cfg *config.Config) (*Set, error) {
	file, err := sqlitefile.OpenMemory(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedded queue in memory: %w", err)
	}
	return onFile(ctx, cfg, file, func(s *Set) error { return s.offlinePostgres(ctx, cfg) })
}

// onFile takes file over: it is closed with the set, or here after an error. postgres keeps claims and dead letters where they are not in the
// file.
func onFile(ctx context.Context, cfg *config.Config, file *sqlitefile.File, postgres func(*Set) error) (*Set, error) {
	s := &Set{closers: []func() error{file.Close}}
	broker, err := embedded.OnFile(ctx, file, embedded.Config{})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Broker = broker
	s.closers = append(s.closers, broker.Close)
	if cfg.ClaimStore() == config.StorePostgres {
		err = postgres(s)
	} else {
		err = s.keep(ctx, cfg, file)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
