package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const (
	createSchema = `CREATE TABLE IF NOT EXISTS caisson_schema (name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID`
	readVersion  = `SELECT version FROM caisson_schema WHERE name = ?`
	writeVersion = `INSERT INTO caisson_schema (name, version) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version`
)

// Migrate brings the tables of the package called name to the version len(statements) by running the statements that the
// file has not seen yet, in order, in one transaction. Only ever append to statements. Several processes may call it at once. A
// file that is further than statements gives [ErrNewer].
func (f *database) Migrate(ctx context.Context, name string, statements []string) error {
	err := f.Write(ctx, true, func(tx *Tx) error {
		if _, err := tx.Exec(createSchema); err != nil {
			return err
		}
		version := 0
		err := tx.QueryRow(readVersion, []any{name}, &version)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if version > len(statements) {
			return fmt.Errorf("%w: tables of %s have version %d, this program knows %d: run the newer program or use another file",
				ErrNewer, name, version, len(statements))
		}
		if version == len(statements) {
			return nil
		}
		for i := version; i < len(statements); i++ {
			if err := tx.conn.script(statements[i]); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
		}
		_, err = tx.Exec(writeVersion, name, len(statements))
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate %s in %s: %w", name, f.cfg.Path, err)
	}
	return nil
}
