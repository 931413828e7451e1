package pgdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Generations are the partitions of one family of tables, which are opened one after the other and dropped whole. It is a value without
// state: any number of processes may advance and drop the same family at once.
//
// Each table is partitioned by LIST (gen), and its partitions are named table_gen. A migration makes the first one, with its indexes and
// settings; the later ones copy it.
//
// What writers keep to, so that no row that is needed is dropped and no two rows of one key come to be:
//
//   - Whoever inserts begins a read committed transaction with [Generations.Lock], in a statement of its own. The statements after it
//     insert into [Generations.Newest]. So all who write at the same time use the same generation, and see every row of the older ones.
//   - An update that makes a row needed again sets gen to the newest as well.
//
// No clock decides this. A clock only says when it is time for a new generation.
type Generations struct {
	Pool   *pgxpool.Pool
	Schema string
	Family string
	// Tables are locked and dropped in this order.
	Tables []GenerationTable
	// Every is how long a generation takes new rows.
	Every time.Duration
	// Keep is how long a generation is left alone after it stopped to take new rows. Rows that are needed for longer are moved.
	Keep time.Duration
	// Clock is an SQL expression. Default clock_timestamp().
	Clock string
}

// GenerationTable is one table of a family.
type GenerationTable struct {
	Name string
	// Needed is the SQL condition of a row that must not be dropped. {now} in it stands for the time. Empty means that none is: old partitions
	// are dropped unread, and how many rows they had is what the server believes.
	Needed string
}

const (
	// lockWait bounds how long opening or dropping a generation may hold up the writers behind it.
	lockWait = "300ms"
	// sweepPages is how much of a partition one statement looks through for rows to move, and sweepRows how many it moves.
	sweepPages = 8192
	sweepRows  = 2000
)

// Lock is the statement that begins a transaction which inserts. It waits while a generation is opened.
func (g Generations) Lock() string {
	return "LOCK TABLE " + g.table("generations") + " IN ROW SHARE MODE"
}

// Newest is an SQL expression of the generation that takes new rows.
func (g Generations) Newest() string {
	return "(SELECT max(gen) FROM " + g.table("generations") + " WHERE family = " + quote(g.Family) + ")"
}

// Advance opens a new generation if the newest is older than Every, and reports whether it did.
func (g Generations) Advance(ctx context.Context) (opened bool, err error) {
	due, err := g.due(ctx, g.Pool)
	if err != nil || !due {
		return false, g.failed("open", err)
	}
	err = pgx.BeginTxFunc(ctx, g.Pool, writing, func(tx pgx.Tx) error {
		alone, err := g.alone(ctx, tx)
		if err != nil || !alone {
			return err
		}
		if due, err = g.due(ctx, tx); err != nil || !due {
			return err
		}
		opened = true
		return g.open(ctx, tx)
	})
	return opened && err == nil, g.failed("open", err)
}

// open makes the partitions first and stops the writers then, for as short as can be.
func (g Generations) open(ctx context.Context, tx pgx.Tx) error {
	var newest int
	if err := tx.QueryRow(ctx, "SELECT "+g.Newest(), exec).Scan(&newest); err != nil {
		return fmt.Errorf("newest generation: %w", err)
	}
	next := newest + 1
	attach := g.lockExclusive()
	for _, t := range g.Tables {
		options, err := g.options(ctx, tx, t, newest)
		if err != nil {
			return err
		}
		create := "CREATE TABLE " + g.partition(t, next) + " (LIKE " + g.partition(t, newest) + " INCLUDING ALL)" + options
		if _, err := tx.Exec(ctx, create, exec); err != nil {
			return err
		}
		attach = append(attach, fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%d)", g.table(t.Name), g.partition(t, next), next))
	}
	attach = append(attach, fmt.Sprintf("INSERT INTO %s (family, gen, opened_at) VALUES (%s, %d, %s)",
		g.table("generations"), quote(g.Family), next, g.clock()))
	return run(ctx, tx, attach...)
}

func (g Generations) lockExclusive() []string {
	return []string{"SET LOCAL lock_timeout = '" + lockWait + "'", "LOCK TABLE " + g.table("generations") + " IN EXCLUSIVE MODE"}
}

// options returns the storage parameters of a partition, which LIKE leaves out.
func (g Generations) options(ctx context.Context, tx pgx.Tx, t GenerationTable, gen int) (string, error) {
	var options []string
	err := tx.QueryRow(ctx, "SELECT reloptions FROM pg_class WHERE oid = $1::text::regclass", exec, g.partition(t, gen)).Scan(&options)
	if err != nil || len(options) == 0 {
		return "", err
	}
	return " WITH (" + strings.Join(options, ", ") + ")", nil
}

// due looks at the newest generation alone, and does not wait for a time to come that a clock which was ahead has left in the table.
func (g Generations) due(ctx context.Context, db querier) (due bool, err error) {
	err = db.QueryRow(ctx, "SELECT abs(extract(epoch FROM "+g.clock()+" - opened_at)) * 1000000 >= $1::bigint FROM "+
		g.table("generations")+" WHERE family = "+quote(g.Family)+" ORDER BY gen DESC LIMIT 1", exec, g.Every.Microseconds()).Scan(&due)
	return due, err
}

// alone reports whether nobody else works on the family; the others leave it to tx then.
func (g Generations) alone(ctx context.Context, tx pgx.Tx) (alone bool, err error) {
	err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended('caisson generations of ' || $1, 0))", exec,
		g.Schema+" "+g.Family).Scan(&alone)
	return alone, err
}

// Drop drops the generations of which no row is needed, after it has moved those that are to the newest, and returns how many rows it
// removed.
func (g Generations) Drop(ctx context.Context) (removed int64, err error) {
	gens, err := g.over(ctx)
	if err != nil {
		return 0, g.failed("drop", err)
	}
	var errs []error // one that cannot be dropped keeps no other
	for _, gen := range gens {
		err := g.sweep(ctx, gen)
		if err == nil {
			var n int64
			n, err = g.drop(ctx, gen)
			removed += n
		}
		if err = g.failed("drop", err); errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return removed, err
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// over returns the generations whose time is over, oldest first. The clock may have been ahead when the next one was opened, but hardly
// at all later ones.
func (g Generations) over(ctx context.Context) ([]int, error) {
	rows, err := g.Pool.Query(ctx, "SELECT gen FROM (SELECT gen, min(opened_at) OVER (ORDER BY gen ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) "+
		"AS ended FROM "+g.table("generations")+" WHERE family = "+quote(g.Family)+") g WHERE ended <= "+g.clock()+
		" - $1::bigint * interval '1 microsecond' ORDER BY gen", exec, g.Keep.Microseconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// sweep moves rows that are needed to the newest generation. It leaves out rows that somebody has locked.
func (g Generations) sweep(ctx context.Context, gen int) error {
	for _, t := range g.Tables {
		if t.Needed == "" {
			continue
		}
		var pages int64
		size := "SELECT coalesce(pg_relation_size(to_regclass($1)) / current_setting('block_size')::bigint, 0)"
		if err := g.Pool.QueryRow(ctx, size, exec, g.partition(t, gen)).Scan(&pages); err != nil {
			return err
		}
		for from := int64(0); from < pages; {
			moved, alone, err := g.move(ctx, t, gen, from)
			if err != nil || !alone {
				return err
			}
			if moved < sweepRows {
				from += sweepPages
			}
		}
	}
	return nil
}

func (g Generations) move(ctx context.Context, t GenerationTable, gen int, from int64) (moved int64, alone bool, err error) {
	statement := fmt.Sprintf(`UPDATE %s SET gen = %s WHERE gen = %d AND ctid = ANY (ARRAY(SELECT ctid FROM %s
WHERE ctid >= '(%d,0)' AND ctid < '(%d,0)' AND (%s) LIMIT %d FOR UPDATE SKIP LOCKED))`,
		g.table(t.Name), g.Newest(), gen, g.partition(t, gen), from, from+sweepPages, g.needed(t), sweepRows)
	err = pgx.BeginTxFunc(ctx, g.Pool, writing, func(tx pgx.Tx) error {
		if alone, err = g.alone(ctx, tx); err != nil || !alone {
			return err
		}
		if alone, err = g.there(ctx, tx, gen); err != nil || !alone {
			return err
		}
		if err := run(ctx, tx, g.Lock()); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, statement, exec)
		moved = tag.RowsAffected()
		return err
	})
	return moved, alone, err
}

// drop drops a generation if no row of it is needed. A row that is not needed stays so, for the rules in [Generations].
func (g Generations) drop(ctx context.Context, gen int) (removed int64, err error) {
	err = pgx.BeginTxFunc(ctx, g.Pool, writing, func(tx pgx.Tx) error {
		alone, err := g.alone(ctx, tx)
		if err != nil || !alone {
			return err
		}
		rows, needed, err := g.count(ctx, tx, gen)
		if err != nil || needed {
			return err
		}
		statements := []string{
			"SET LOCAL lock_timeout = '" + lockWait + "'",
			fmt.Sprintf("DELETE FROM %s WHERE family = %s AND gen = %d", g.table("generations"), quote(g.Family), gen),
		}
		for _, t := range g.Tables {
			statements = append(statements, "DROP TABLE "+g.partition(t, gen))
		}
		removed = rows
		return run(ctx, tx, statements...)
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

func (g Generations) count(ctx context.Context, tx pgx.Tx, gen int) (rows int64, needed bool, err error) {
	if err := run(ctx, tx, "SET LOCAL statement_timeout = '10min'"); err != nil { // it reads all rows
		return 0, false, err
	}
	if there, err := g.there(ctx, tx, gen); err != nil || !there {
		return 0, true, err
	}
	for _, t := range g.Tables {
		var all, left int64
		query := fmt.Sprintf("SELECT count(*), count(*) FILTER (WHERE %s) FROM %s", g.needed(t), g.partition(t, gen))
		if t.Needed == "" {
			query = "SELECT greatest(reltuples, 0)::bigint, 0 FROM pg_class WHERE oid = " + quote(g.partition(t, gen)) + "::regclass"
		}
		if err := tx.QueryRow(ctx, query, exec).Scan(&all, &left); err != nil || left > 0 {
			return 0, true, err
		}
		rows += all
	}
	return rows, false, nil
}

// there reports whether nobody has dropped the generation. It reads the table and not the catalog: to_regclass may answer from a cache that
// has not heard of a drop which is older than the transaction's advisory lock.
func (g Generations) there(ctx context.Context, tx pgx.Tx, gen int) (there bool, err error) {
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+g.table("generations")+" WHERE family = $1 AND gen = $2)", exec,
		g.Family, gen).Scan(&there)
	return there, err
}

func (g Generations) clock() string { return cmp.Or(g.Clock, "clock_timestamp()") }

func (g Generations) needed(t GenerationTable) string {
	return strings.ReplaceAll(t.Needed, "{now}", "(SELECT "+g.clock()+")") // asked once, not for each row
}

func (g Generations) table(name string) string { return pgx.Identifier{g.Schema, name}.Sanitize() }

func (g Generations) partition(t GenerationTable, gen int) string {
	return g.table(t.Name + "_" + strconv.Itoa(gen))
}

// failed says what failed. The caller's own end is not the database's fault.
func (g Generations) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if Unavailable(err) && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("%s generation of %s: %w", what, g.Family, err)
}

// exec keeps statements that name a partition out of the caches of prepared ones.
const exec = pgx.QueryExecModeExec

var writing = pgx.TxOptions{BeginQuery: BeginWrite}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func run(ctx context.Context, tx pgx.Tx, statements ...string) error {
	_, err := tx.Exec(ctx, strings.Join(statements, ";\n"), pgx.QueryExecModeSimpleProtocol)
	return err
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
