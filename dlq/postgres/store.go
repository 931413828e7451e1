package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/migrations"
)

// Config describes a store. The zero value is usable.
type Config struct {
	// Schema is where the tables are. Empty means [migrations.DefaultSchema].
	Schema string
	// Generation is how long new entries go to the same partition, and so how much longer than their retention they may stay. It should
	// be the same in all processes. Default 24 h.
	Generation time.Duration
}

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, migrations.DefaultSchema)
	c.Generation = cmp.Or(c.Generation, 24*time.Hour)
	return c
}

// Store is a [dlq.Store] and a [audit.Log] in PostgreSQL. It is safe for concurrent use and has nothing to close.
type Store struct {
	pool    *pgxpool.Pool
	cfg     Config
	sql     statements
	answers answers
	picks   picks
}

var (
	_ dlq.Store = (*Store)(nil)
	_ audit.Log = (*Store)(nil)
)

// New returns the store in pool, which the caller keeps and closes. It asks nothing of the server: package migrations makes the tables
// and checks their version.
func New(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	switch {
	case pool == nil:
		return nil, errors.New("dlq: pool is missing")
	case cfg.Generation < 0:
		return nil, fmt.Errorf("dlq: generation %v: must not be negative", cfg.Generation)
	}
	cfg = cfg.withDefaults()
	return &Store{pool: pool, cfg: cfg, sql: newStatements(cfg.Schema)}, nil
}

// write runs fn in a transaction that holds the writers' lock, and again if it lost against another transaction.
func (s *Store) write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return s.failed(pgdb.Write(ctx, s.pool, s.sql.write, fn))
}

// read runs a query and reads its rows by fn.
func (s *Store) read(ctx context.Context, query string, args []any, fn func(rows pgx.Rows) error) error {
	return s.readIn(ctx, beginRead, query, args, fn)
}

// find is read for a query with the condition of f.
func (s *Store) find(ctx context.Context, f dlq.Filter, query string, args []any, fn func(rows pgx.Rows) error) error {
	if len(f.JSON) == 0 {
		return s.read(ctx, query, args, fn)
	}
	return s.readIn(ctx, beginSearch, query, args, fn)
}

func (s *Store) readIn(ctx context.Context, begin, query string, args []any, fn func(rows pgx.Rows) error) error {
	return s.failed(pgdb.Read(ctx, s.pool, begin, query, args, fn))
}

// failed marks errors after which a call may be repeated.
func (s *Store) failed(err error) error {
	if pgdb.Unavailable(err) && !errors.Is(err, dlq.ErrUnavailable) {
		return fmt.Errorf("%w: %w", dlq.ErrUnavailable, err)
	}
	return err
}

// statements are the texts that do not depend on a filter.
type statements struct {
	names                                            *strings.Replacer
	write, insert, find, free, remove, resolve, move string
	take, messages, samples                          string
	get, getMany, depth, held, compact, forget       string
	expire, expireAudit                              string
	beginAudit, updateAudit, audit, listAudits       string
}

// in fills in the names of tables.
func (s *statements) in(text string) string { return s.names.Replace(text) }

// family describes the generations of one of the tables. keep and every matter to expiry alone.
func family(pool *pgxpool.Pool, schema, table, needed string) pgdb.Generations {
	return pgdb.Generations{
		Pool: pool, Schema: schema, Family: table, Tables: []pgdb.GenerationTable{{Name: table, Needed: needed}},
	}
}

func newStatements(schema string) statements {
	table := func(name string) string { return pgx.Identifier{schema, name}.Sanitize() }
	letters, messages := family(nil, schema, lettersTable, ""), family(nil, schema, messagesTable, "")
	s := statements{write: beginWrite + letters.Lock(), names: strings.NewReplacer(
		"{letters}", table(lettersTable), "{messages}", table(messagesTable), "{generations}", table("generations"), "{depth}", table("dead_depth"),
		"{audit}", table("dead_letter_audit"), "{newest letters}", letters.Newest(), "{newest messages}", messages.Newest(),
		"{next}", "nextval('"+strings.ReplaceAll(table("dead_letters_seq"), "'", "''")+"')", "{entry}", entryColumns,
	)}
	s.insert, s.find, s.free, s.remove = s.in(insertEntries), s.in(findEntry), s.in(freeEntries), s.in(removeEntries)
	s.resolve, s.move = s.in(lockEntries), s.in(closeEntries)
	s.take, s.messages, s.samples = s.in(takeEntries), s.in(selectMessages), s.in(selectSamples)
	s.getMany = s.in(getEntries)
	s.get, s.depth, s.held, s.compact, s.forget = s.in(getEntry), s.in(deadDepth), s.in(heldDepth), s.in(compactDepth), s.in(forgetDepth)
	s.expire, s.expireAudit = s.in(expireEntries), s.in(expireAudits)
	s.beginAudit, s.updateAudit, s.audit, s.listAudits = s.in(beginAudit), s.in(updateAudit), s.in(selectAudit), s.in(listAudits)
	return s
}
