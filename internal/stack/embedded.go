package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/internal/sqlitefile"
	"github.com/caisson-go/caisson/queue/embedded"
)

// openEmbedded opens queue, claims and dead letters on one file, so that they share its commits.
func openEmbedded(ctx context.Context, cfg *config.Config, mode Mode) (*Stack, error) {
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
	return onFile(ctx, file)
}

// OpenMemory opens an embedded stack that lives in memory, to check with what Open would be used for.
func OpenMemory(ctx context.Context) (*Stack, error) {
	file, err := sqlitefile.OpenMemory(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedded queue in memory: %w", err)
	}
	return onFile(ctx, file)
}

// onFile takes file over: it is closed with the stack, or here after an error.
func onFile(ctx context.Context, file *sqlitefile.File) (*Stack, error) {
	s := &Stack{closers: []func() error{file.Close}}
	broker, err := embedded.OnFile(ctx, file, embedded.Config{})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Broker = broker
	s.closers = append(s.closers, broker.Close)
	claims, err := claimsqlite.New(ctx, file)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Claims = claims
	letters, err := dlqsqlite.New(ctx, file)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.DeadLetters = letters
	return s, nil
}
