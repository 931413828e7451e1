package pgdb_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// things makes a family of one table, in which rows with needed are needed.
func things(t *testing.T) (*pgxpool.Pool, pgdb.Generations) {
	t.Helper()
	pool, schema := testserver.Schema(t)
	g := pgdb.Generations{Pool: pool, Schema: schema, Family: "things", Tables: []pgdb.GenerationTable{{Name: "things", Needed: "needed"}}}
	script(t, pool, `SET LOCAL search_path TO `+schema+`;
CREATE TABLE things (gen int NOT NULL, id int NOT NULL, needed bool NOT NULL) PARTITION BY LIST (gen);
CREATE TABLE things_1 PARTITION OF things FOR VALUES IN (1) WITH (fillfactor = 90);
CREATE UNIQUE INDEX ON things_1 (id);
INSERT INTO generations (family, gen) VALUES ('things', 1)`)
	return pool, g
}

func script(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func advance(t *testing.T, g pgdb.Generations) {
	t.Helper()
	if opened, err := g.Advance(t.Context()); err != nil || !opened {
		t.Fatalf("advance: opened %v, %v", opened, err)
	}
}

func TestGenerationsMoveWhatIsNeededAndDropTheRest(t *testing.T) {
	t.Parallel()
	pool, g := things(t)
	script(t, pool, fmt.Sprintf(`INSERT INTO %s.things SELECT 1, i, i %% 2 = 0 FROM generate_series(1, 10000) i`, g.Schema))
	if removed, err := g.Drop(t.Context()); err != nil || removed != 0 {
		t.Fatalf("the only generation: removed %d, %v", removed, err)
	}
	advance(t, g)
	g.Keep = time.Hour
	if removed, err := g.Drop(t.Context()); err != nil || removed != 0 {
		t.Fatalf("before its time: removed %d, %v", removed, err)
	}
	g.Keep = 0
	if removed, err := g.Drop(t.Context()); err != nil || removed != 5000 {
		t.Fatalf("removed %d, %v, want the 5000 that are not needed", removed, err)
	}
	things := g.Schema + ".things"
	if n := number(t, pool, "SELECT count(*) FROM "+things+" WHERE gen = 2 AND needed"); n != 5000 {
		t.Errorf("%d of 5000 needed rows were moved", n)
	}
	if n := number(t, pool, "SELECT count(*) FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relname LIKE 'things_1%'", g.Schema); n != 0 {
		t.Errorf("%d relations of the dropped generation are left", n)
	}
	if n := number(t, pool, "SELECT count(*) FROM pg_class WHERE oid = $1::text::regclass AND 'fillfactor=90' = ANY (reloptions)", things+"_2"); n != 1 {
		t.Errorf("the new partition lacks the old one's settings")
	}
	g.Every = time.Hour
	if opened, err := g.Advance(t.Context()); err != nil || opened {
		t.Errorf("a young generation: opened %v, %v", opened, err)
	}
}

// A row that somebody works on holds its generation until the next call.
func TestGenerationsWaitForLockedRows(t *testing.T) {
	t.Parallel()
	pool, g := things(t)
	script(t, pool, fmt.Sprintf(`INSERT INTO %s.things VALUES (1, 1, true)`, g.Schema))
	advance(t, g)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // after the commit below it does nothing
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+g.Schema+".things FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if removed, err := g.Drop(t.Context()); err != nil || removed != 0 {
		t.Fatalf("with a locked row: removed %d, %v", removed, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, pool, "SELECT min(gen) FROM "+g.Schema+".things"); n != 2 {
		t.Errorf("the row lies in generation %d", n)
	}
}

// Many writers insert the same ids while generations are opened and dropped all the time: an id is never there twice, and the
// generation that a writer uses is the newest for as long as its transaction lasts.
func TestWritersNeverUseTwoNewestGenerations(t *testing.T) {
	t.Parallel()
	pool, g := things(t)
	const ids, writers = 300, 6
	var inserted [ids]atomic.Int32
	done := make(chan struct{})
	var keepers, crowd sync.WaitGroup
	for range 2 {
		keepers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := g.Advance(t.Context()); err != nil && !pgdb.Unavailable(err) {
					t.Errorf("advance: %v", err)
				}
				if _, err := g.Drop(t.Context()); err != nil && !pgdb.Unavailable(err) {
					t.Errorf("drop: %v", err)
				}
			}
		})
	}
	for range writers {
		crowd.Go(func() {
			for id := range ids {
				for {
					n, err := insertOnce(t.Context(), pool, g, id)
					if pgdb.Conflict(err) {
						continue // the row was just moved
					}
					if err != nil {
						t.Errorf("insert %d: %v", id, err)
					}
					inserted[id].Add(int32(n))
					break
				}
			}
		})
	}
	crowd.Wait()
	close(done)
	keepers.Wait()
	for id := range inserted {
		if n := inserted[id].Load(); n != 1 {
			t.Errorf("id %d was inserted %d times", id, n)
		}
	}
	if n := number(t, pool, "SELECT count(*) FROM "+g.Schema+".things"); n != ids {
		t.Errorf("%d rows, want %d", n, ids)
	}
	if n := number(t, pool, "SELECT max(gen) FROM "+g.Schema+".generations WHERE family = 'things'"); n < 3 {
		t.Errorf("only %d generations were opened: the test has shown nothing", n)
	}
}

func insertOnce(ctx context.Context, pool *pgxpool.Pool, g pgdb.Generations, id int) (inserted int64, err error) {
	table := g.Schema + ".things"
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, g.Lock()); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "INSERT INTO "+table+" SELECT "+g.Newest()+", $1, true WHERE NOT EXISTS (SELECT FROM "+table+
			" WHERE id = $1) ON CONFLICT DO NOTHING", id)
		inserted = tag.RowsAffected()
		return err
	})
	return inserted, err
}

// A clock that was ahead for a while leaves a time in the future behind. Generations are opened and dropped all the same.
func TestGenerationsOutliveAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	pool, g := things(t)
	g.Every = time.Hour
	script(t, pool, fmt.Sprintf(`INSERT INTO %s.things VALUES (1, 1, false)`, g.Schema))
	g.Clock = "(clock_timestamp() + interval '300 days')"
	advance(t, g)
	g.Clock = ""
	advance(t, g)
	if opened, err := g.Advance(t.Context()); err != nil || opened {
		t.Fatalf("a young generation: opened %v, %v", opened, err)
	}
	if removed, err := g.Drop(t.Context()); err != nil || removed != 1 {
		t.Errorf("removed %d, %v, want the one row of before", removed, err)
	}
	if n := number(t, pool, "SELECT count(*) FROM "+g.Schema+".generations WHERE family = 'things'"); n != 1 {
		t.Errorf("%d generations are left", n)
	}
}

// A generation that cannot be dropped keeps no later one.
func TestGenerationThatCannotBeDroppedKeepsNoOther(t *testing.T) {
	t.Parallel()
	pool, g := things(t)
	for range 3 {
		advance(t, g)
	}
	script(t, pool, "DROP TABLE "+g.Schema+".things_1") // by hand
	if _, err := g.Drop(t.Context()); err == nil || !strings.Contains(err.Error(), "things_1") {
		t.Errorf("a partition that is missing: %v", err)
	}
	if n := number(t, pool, "SELECT count(*) FROM "+g.Schema+".generations WHERE family = 'things'"); n != 2 {
		t.Errorf("%d generations are left, want the first and the newest", n)
	}
}

// Where no row of an old generation is ever needed, it goes unread, and with what is in it.
func TestGenerationsThatNobodyNeeds(t *testing.T) {
	t.Parallel()
	pool, g := things(t)
	g.Tables[0].Needed = ""
	things := g.Schema + ".things"
	script(t, pool, fmt.Sprintf(`INSERT INTO %s SELECT 1, i, true FROM generate_series(1, 1000) i; ANALYZE %[1]s_1`, things))
	advance(t, g)
	script(t, pool, fmt.Sprintf(`INSERT INTO %s VALUES (2, 2000, true)`, things))
	g.Keep = time.Hour
	if removed, err := g.Drop(t.Context()); err != nil || removed != 0 {
		t.Fatalf("before its time: removed %d, %v", removed, err)
	}
	g.Keep = 0
	if removed, err := g.Drop(t.Context()); err != nil || removed != 1000 {
		t.Errorf("removed %d, %v, want 1000", removed, err)
	}
	if n := number(t, pool, "SELECT count(*) FROM "+things); n != 1 {
		t.Errorf("%d rows are left, want the one of the newest generation", n)
	}
}
