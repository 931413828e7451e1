package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/journal/internal/row"
	"github.com/caisson-go/caisson/webhook/journal/postgres"
)

// explain returns what the server does for a query.
func explain(t *testing.T, pool *pgxpool.Pool, begin, query string, args []any) string {
	t.Helper()
	var plan []string
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "EXPLAIN "+query, args...)
		if err != nil {
			return err
		}
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// TestListsWalkIndexes: in partitions that the server has looked at and in one that it has not, however much is in them.
func TestListsWalkIndexes(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	store := open(t, pool, postgres.Config{Schema: schema, Generation: time.Microsecond})
	fill := func() {
		for _, statement := range []string{
			`INSERT INTO %[1]s.webhook_attempts SELECT (SELECT max(gen) FROM %[1]s.generations WHERE family = 'webhook_attempts'),
				nextval('%[1]s.webhook_attempts_seq'), now() - i * interval '1 second', 'default', ('shop-' || i %% 100)::bytea, ('evt-' || i %% 3000)::bytea,
				'', 1, CASE WHEN i %% 50 = 0 THEN 500 ELSE 200 END, 'answered', 1, repeat('x', 100), '', '', false, false FROM generate_series(1, 30000) i`,
			`INSERT INTO %[1]s.webhook_events SELECT (SELECT max(gen) FROM %[1]s.generations WHERE family = 'webhook_events'),
				nextval('%[1]s.webhook_events_seq'), ('t-' || i %% 10)::bytea, (random()::text || i)::bytea, 't', '', now() - i * interval '1 second', 'b'
				FROM generate_series(1, 30000) i`,
		} {
			if _, err := pool.Exec(t.Context(), fmt.Sprintf(statement, schema)); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	if _, err := pool.Exec(t.Context(), fmt.Sprintf("ANALYZE %[1]s.webhook_attempts_1, %[1]s.webhook_events_1", schema)); err != nil {
		t.Fatal(err)
	}
	if err := store.Expire(t.Context(), time.Hour, time.Hour); err != nil {
		t.Fatal(err)
	}
	fill()
	now := time.Now()
	cursor := row.At(now.Add(-time.Minute), 100).String()
	for _, after := range []string{"", cursor} {
		for _, c := range []struct {
			filter journal.AttemptFilter
			index  string
			sorts  bool
		}{
			{journal.AttemptFilter{}, "at", false},
			{journal.AttemptFilter{From: now.Add(-time.Hour)}, "at", false},
			{journal.AttemptFilter{Endpoint: "shop-7"}, "endpoint", false},
			{journal.AttemptFilter{Endpoint: "shop-7", To: now}, "endpoint", false},
			{journal.AttemptFilter{Endpoint: "shop-7", Failed: true}, "failed", false},
			{journal.AttemptFilter{Event: "evt-7"}, "event", true}, // of one event: few
			{journal.AttemptFilter{Event: "evt-7", Endpoint: "shop-7"}, "event", false},
		} {
			begin, query, args, err := store.ListAttempts(c.filter, after)
			if err != nil {
				t.Fatal(err)
			}
			plan := explain(t, pool, begin, query, args)
			for _, gen := range []string{"1", "2"} {
				name := indexOf(t, pool, schema, "webhook_attempts_"+gen, c.index)
				if !strings.Contains(plan, name+" ") {
					t.Errorf("%+v after %q does not use %s:\n%s", c.filter, after, name, plan)
				}
			}
			if strings.Contains(plan, "Seq Scan") || !c.sorts && strings.Contains(plan, "Sort  (") {
				t.Errorf("%+v after %q:\n%s", c.filter, after, plan)
			}
		}
		begin, query, args, err := store.ListEvents(journal.EventFilter{Tenant: "t-7", From: now.Add(-time.Hour)}, after)
		if err != nil {
			t.Fatal(err)
		}
		if plan := explain(t, pool, begin, query, args); strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort  (") {
			t.Errorf("events after %q:\n%s", after, plan)
		}
	}
	begin, query := store.ListTried()
	if plan := explain(t, pool, begin, query, []any{[]byte("shop-7"), [][]byte{[]byte("evt-7"), []byte("evt-8")}, []byte("tenant")}); strings.Contains(plan, "Seq Scan") {
		t.Errorf("tried:\n%s", plan)
	}
}

// indexOf returns the name of a partition's index by its columns: those that were copied have names of the server's.
func indexOf(t *testing.T, pool *pgxpool.Pool, schema, partition, what string) (name string) {
	t.Helper()
	columns := map[string]string{
		"at": "(at, seq)", "endpoint": "(endpoint, at, seq)", "failed": "(endpoint, at, seq) WHERE", "event": "(event, endpoint, at, seq)",
	}[what]
	// Not the view pg_indexes: it also reads the definitions of indexes in other schemas, which other tests drop meanwhile.
	err := pool.QueryRow(t.Context(), `SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid CROSS JOIN pg_get_indexdef(indexrelid) AS definition
		WHERE indrelid = format('%I.%I', $1::text, $2::text)::regclass AND strpos(definition, $3) > 0
		ORDER BY length(definition) LIMIT 1`, schema, partition, columns).Scan(&name)
	if err != nil {
		t.Fatalf("%s of %s: %v", columns, partition, err)
	}
	return name
}

// TestExpireLeavesNothingBehind: what is expired is gone from the disk, with its indexes, at once.
func TestExpireLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	store := open(t, pool, postgres.Config{Schema: schema, Generation: time.Microsecond})
	size := func() (bytes int64) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
			WHERE relnamespace = $1::text::regnamespace AND relkind = 'r' AND relname ~ '^webhook_(events|attempts)_'`, schema).Scan(&bytes)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	empty := size()
	for range 3 {
		var attempts []journal.Attempt
		for i := range 2000 {
			attempts = append(attempts, journal.Attempt{Endpoint: "shop", Event: fmt.Sprint("evt_", i), At: time.Now(), Excerpt: strings.Repeat("x", 1000)})
		}
		if err := store.Log(t.Context(), attempts); err != nil {
			t.Fatal(err)
		}
		if full := size(); full < empty+2<<20 {
			t.Fatalf("%d bytes with 2,000 attempts, %d without", full, empty)
		}
		for range 3 { // the last of them is the one that takes new rows
			if err := store.Expire(t.Context(), time.Nanosecond, time.Nanosecond); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond) // what is under test is time going by
		}
		if left := size(); left > empty {
			t.Errorf("%d bytes are left, %d were there at the start", left, empty)
		}
	}
}
