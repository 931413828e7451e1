package dlqcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
)

// session is what one command works on.
type session struct {
	*backends.Set
	call caller
	// letters are the dead letters that the configuration, or --store, names.
	letters letters
	// store holds them; nil where they live in the broker.
	store  dlq.Store
	queues []config.Queue
	// keyRetention is how long a completed key is remembered.
	keyRetention time.Duration
	file         io.Closer // of --store
}

// letters are dead letters, wherever they live.
type letters interface {
	// list returns a page of at most limit entries (0 for all).
	list(ctx context.Context, f dlq.Filter, after string, limit int) (entryList, error)
	// get returns one entry with its message.
	get(ctx context.Context, id string) (dlq.Entry, error)
	groups(ctx context.Context, f dlq.Filter) (groupList, error)
	// byQueue groups entries by queue as well, largest group first.
	byQueue(ctx context.Context, f dlq.Filter) ([]queueGroup, error)
	// each visits entries with their messages. rest says what was left out, "" if nothing.
	each(ctx context.Context, f dlq.Filter, visit func(dlq.Entry) error) (rest string, err error)
	// scope says how much a change of what f selects is about, for a question. Nothing selected is "". until bounds
	// what was there: nobody is asked about what is stored later.
	scope(ctx context.Context, f dlq.Filter) (what string, until time.Time, err error)
	// purge purges what f selects and was stored before until, unless that is zero.
	purge(ctx context.Context, f dlq.Filter, until time.Time, dryRun bool) (purgeResult, error)
	replay(ctx context.Context, plan replay.Config) (replayResult, error)
}

// sample says how much of the dead letters was looked at where only a sample can be had.
type sample struct {
	Looked int `json:"looked"`
	// Complete says that these were all.
	Complete bool `json:"complete"`
}

// open reads the configuration and opens what it names. mode is that of the file of --store.
func (t *tool) open(cmd *cobra.Command, mode backends.Mode) (*session, error) {
	cfg, err := t.Load(cmd)
	if err != nil {
		return nil, err
	}
	opened, err := t.openBackends(cmd.Context(), cfg, backends.Existing)
	if err != nil {
		return nil, err
	}
	s := &session{Set: opened, call: t.call, store: opened.Letters, queues: cfg.Queues, keyRetention: cfg.Idempotency.Retention}
	if t.store != "" {
		if err := s.openFile(cmd.Context(), t.store, mode); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	switch {
	case s.store != nil:
		s.letters = storeLetters{s}
	case s.BrokerDLQ != nil:
		s.letters = brokerLetters{s.BrokerDLQ, t.call}
	default:
		return nil, errors.Join(errors.New("the configuration names no place for dead letters"), s.Close())
	}
	return s, nil
}

// openFile makes the dead letters those of a file.
func (s *session) openFile(ctx context.Context, path string, mode backends.Mode) error {
	if _, err := os.Stat(path); mode == backends.Existing && errors.Is(err, fs.ErrNotExist) {
		return cli.Refuse("--store %s: no such file: import makes it", path)
	}
	store, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return fmt.Errorf("--store %s: %w", path, err)
	}
	s.store, s.file = store, store
	return nil
}

// inBroker returns the dead letters in the broker's own queues, also where a store is in use.
func (s *session) inBroker() (*brokerdlq.Queues, error) {
	if s.BrokerDLQ != nil {
		return s.BrokerDLQ, nil
	}
	if s.Sweeper != nil {
		return s.Sweeper, nil
	}
	names := make([]string, len(s.queues))
	for i, q := range s.queues {
		names[i] = q.Name
	}
	return brokerdlq.New(brokerdlq.Config{Broker: s.Broker, Queues: names})
}

// Close closes the set and the file of --store.
func (s *session) Close() error {
	err := s.Set.Close()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}
