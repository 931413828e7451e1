package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DefaultSchema is where the tables live if nobody says otherwise.
const DefaultSchema = "caisson"

// DB is a connection or a pool.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Up applies the steps that schema has not seen, each in a transaction of its own, and returns them, also beside an error. The schema is made
// if it is missing. Tables that are newer give [ErrNewer]. An empty schema means [DefaultSchema].
func Up(ctx context.Context, db DB, schema string) ([]Step, error) { return known.up(ctx, db, schema) }

// Down takes back the newest steps, at most n of them, and returns them, also beside an error. What their tables held is gone. The schema
// itself stays.
func Down(ctx context.Context, db DB, schema string, n int) ([]Step, error) {
	return known.down(ctx, db, schema, n)
}

func (s steps) up(ctx context.Context, db DB, schema string) ([]Step, error) {
	schema = name(schema)
	var done []Step
	for {
		step, err := s.upOne(ctx, db, schema)
		if err != nil {
			return done, fmt.Errorf("migrate schema %q: %w", schema, advise(err, schema))
		}
		if step == nil {
			return done, nil
		}
		done = append(done, *step)
	}
}

func (s steps) down(ctx context.Context, db DB, schema string, n int) ([]Step, error) {
	schema = name(schema)
	var undone []Step
	for range n {
		step, err := s.downOne(ctx, db, schema)
		if err != nil {
			return undone, fmt.Errorf("migrate schema %q down: %w", schema, advise(err, schema))
		}
		if step == nil {
			break
		}
		undone = append(undone, *step)
	}
	return undone, nil
}

// upOne applies the next step, or none.
func (s steps) upOne(ctx context.Context, db DB, schema string) (next *Step, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, schema); err != nil {
			return err
		}
		if err := prepare(ctx, tx, schema); err != nil {
			return err
		}
		version, err := s.version(ctx, tx, schema)
		if err != nil || version == len(s) {
			return err
		}
		step := s[version]
		if err := script(ctx, tx, step.Up); err != nil {
			return fmt.Errorf("step %d (%s): %w", step.Version, step.Name, err)
		}
		_, err = tx.Exec(ctx, `INSERT INTO `+table(schema)+` (version, name) VALUES ($1, $2)`, pgx.QueryExecModeExec, step.Version, step.Name)
		next = &step
		return err
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// downOne takes back the newest step, or none.
func (s steps) downOne(ctx context.Context, db DB, schema string) (last *Step, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, schema); err != nil {
			return err
		}
		version, err := s.version(ctx, tx, schema)
		if err != nil || version == 0 {
			return err
		}
		step := s[version-1]
		if err := script(ctx, tx, "SET LOCAL search_path TO "+quoted(schema)+";\n"+step.Down); err != nil {
			return fmt.Errorf("step %d (%s): %w", step.Version, step.Name, err)
		}
		_, err = tx.Exec(ctx, `DELETE FROM `+table(schema)+` WHERE version = $1`, pgx.QueryExecModeExec, version)
		last = &step
		return err
	})
	if err != nil {
		return nil, err
	}
	return last, nil
}

// version returns how many steps schema has seen. Tables that are newer, or somebody else's, are an error.
func (s steps) version(ctx context.Context, tx pgx.Tx, schema string) (int, error) {
	applied, err := read(ctx, tx, schema)
	if err != nil {
		return 0, err
	}
	if err := s.compare(schema, applied); err != nil && !errors.Is(err, ErrOlder) {
		return 0, err
	}
	return len(applied), nil
}

// lock lets nobody else migrate until the transaction ends. A step may take long, and waits briefly for tables in use: whoever else wants
// them queues up behind it.
func lock(ctx context.Context, tx pgx.Tx, schema string) error {
	// What follows must see what was committed while it waited, whatever the role's default is.
	if err := script(ctx, tx, `SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0; SET LOCAL client_min_messages TO warning`); err != nil {
		return err
	}
	const take = `SELECT pg_advisory_xact_lock(hashtextextended('caisson migrations of ' || $1, 0))`
	if _, err := tx.Exec(ctx, take, pgx.QueryExecModeExec, schema); err != nil {
		return err
	}
	return script(ctx, tx, `SET LOCAL lock_timeout TO '10s'`)
}

// prepare makes the schema and its table of steps. CREATE IF NOT EXISTS needs the right to create also where there is nothing to do, so that
// it is asked first.
func prepare(ctx context.Context, tx pgx.Tx, schema string) error {
	var exists bool
	const ask = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`
	if err := tx.QueryRow(ctx, ask, pgx.QueryExecModeExec, schema).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if err := script(ctx, tx, "CREATE SCHEMA "+quoted(schema)); err != nil {
			return err
		}
	}
	if exists, err := hasTable(ctx, tx, schema); err != nil {
		return err
	} else if !exists {
		if err := script(ctx, tx, "CREATE TABLE "+table(schema)+
			" (version int PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"); err != nil {
			return err
		}
	}
	return script(ctx, tx, "SET LOCAL search_path TO "+quoted(schema))
}

// script runs several statements.
func script(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// advise adds the way out to errors that an operator meets.
func advise(err error, schema string) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "42501":
		return fmt.Errorf("%w: the role needs rights: have an administrator run CREATE SCHEMA %s AUTHORIZATION <role>, "+
			"or run the command as the role that owns the tables", err, quoted(schema))
	case "55P03":
		return fmt.Errorf("%w: another session uses the tables for long: nothing was changed by this step, run the command again", err)
	case "25006":
		return fmt.Errorf("%w: this is a standby: name the primary, or add target_session_attrs=read-write to a URL with several hosts", err)
	}
	return err
}

func quoted(schema string) string { return pgx.Identifier{schema}.Sanitize() }

// table is the table of steps.
func table(schema string) string { return pgx.Identifier{schema, "schema_migrations"}.Sanitize() }

func name(schema string) string {
	if schema == "" {
		return DefaultSchema
	}
	return schema
}
