package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of [Check], wrapped. Match them with errors.Is.
var (
	// ErrOlder means that the tables lack steps that this program needs, or are not there at all.
	ErrOlder = errors.New("tables are older than this program")
	// ErrNewer means that a newer program has changed the tables.
	ErrNewer = errors.New("tables are newer than this program")
	// ErrForeign means that the steps in the table are not those of this program.
	ErrForeign = errors.New("tables are not those of this program")
)

// Applied is one step that the tables have seen.
type Applied struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	At      time.Time `json:"at"`
}

// Status returns the steps that schema has seen, in order. None is no error.
func Status(ctx context.Context, db DB, schema string) (applied []Applied, err error) {
	schema = name(schema)
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		applied, err = read(ctx, tx, schema)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migrations of schema %q: %w", schema, advise(err, schema))
	}
	return applied, nil
}

// Check returns nil if schema has exactly the steps that this program knows, else [ErrOlder], [ErrNewer] or [ErrForeign] with what to do. Any
// other error means that the database could not be asked.
func Check(ctx context.Context, db DB, schema string) error {
	applied, err := Status(ctx, db, schema)
	if err != nil {
		return err
	}
	return known.compare(name(schema), applied)
}

// Refuses reports whether err is a verdict on the tables: waiting does not help, somebody has to act.
func Refuses(err error) bool {
	return errors.Is(err, ErrOlder) || errors.Is(err, ErrNewer) || errors.Is(err, ErrForeign)
}

// compare holds what schema has seen against the steps.
func (s steps) compare(schema string, applied []Applied) error {
	for i, a := range applied {
		if a.Version != i+1 {
			return fmt.Errorf("schema %q has step %d (%s) where step %d belongs: %w: name another schema (postgres.schema)", schema, a.Version, a.Name, i+1, ErrForeign)
		}
		if i < len(s) && a.Name != s[i].Name {
			return fmt.Errorf("schema %q has step %d %q, which is %q here: %w: name another schema (postgres.schema)", schema, a.Version, a.Name, s[i].Name, ErrForeign)
		}
	}
	switch n := len(applied); {
	case n > len(s):
		return fmt.Errorf("schema %q has version %d, this program knows %d: %w: run the newer program, or take its steps back with its `worker migrate down`",
			schema, n, len(s), ErrNewer)
	case n < len(s):
		return fmt.Errorf("schema %q has version %d, this program needs %d: %w: run `worker migrate up`", schema, n, len(s), ErrOlder)
	}
	return nil
}

// read returns what schema has seen.
func read(ctx context.Context, tx pgx.Tx, schema string) ([]Applied, error) {
	exists, err := hasTable(ctx, tx, schema)
	if err != nil || !exists {
		return nil, err
	}
	rows, err := tx.Query(ctx, `SELECT version, name, at FROM `+table(schema)+` ORDER BY version`, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Applied])
}

func hasTable(ctx context.Context, tx pgx.Tx, schema string) (exists bool, err error) {
	err = tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, pgx.QueryExecModeExec, table(schema)).Scan(&exists)
	return exists, err
}
