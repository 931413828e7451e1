package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// statements of one store, with its schema and clock filled in.
type statements struct {
	begin, commit, guard, lock, now, ping          statement
	claimFresh, complete, extend, abandon          statement
	readKey, readRuns, loadKeys, loadRuns          statement
	saveKeys, addKeys, saveRuns, addRuns, keepRuns statement
	findKeys, findRuns                             statement
}

func newStatements(schema, clock string, g pgdb.Generations) *statements {
	fill := strings.NewReplacer(
		"{claims}", pgx.Identifier{schema, "claims"}.Sanitize(), "{runs}", pgx.Identifier{schema, "runs"}.Sanitize(),
		"{newest}", g.Newest(), "{clock}", clock, "{keyColumns}", keyColumns, "{runColumns}", runColumns,
		"{micros}", "(extract(epoch FROM now) * 1000000)::int8", "{held}", held, "{few}", few,
	)
	st := func(name, sql string) statement {
		sql = fill.Replace(sql)
		return statement{fmt.Sprintf("caisson_claims_%s_%x", name, scopeSum(sql)), sql} // stores of several schemas may share a pool
	}
	return &statements{
		begin: st("begin", "BEGIN ISOLATION LEVEL READ COMMITTED"), commit: st("commit", "COMMIT"), lock: st("lock", g.Lock()),
		guard: st("guard", "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"),
		// It writes and changes nothing: an update of no row needs a transaction that may write.
		ping:       st("ping", "UPDATE {claims} SET token = token WHERE gen = {newest} AND id = '00000000-0000-0000-0000-000000000000'"),
		now:        st("now", "SELECT {micros}, {newest} FROM (SELECT {clock} AS now) n"),
		claimFresh: st("fresh", claimFresh), complete: st("complete", complete), extend: st("extend", extend), abandon: st("abandon", abandon),
		readKey: st("read_key", readKey), readRuns: st("read_runs", readRuns), loadKeys: st("load_keys", loadKeys), loadRuns: st("load_runs", loadRuns),
		findKeys: st("find_keys", findKeys), findRuns: st("find_runs", findRuns),
		saveKeys: st("save_keys", saveKeys), addKeys: st("add_keys", addKeys),
		saveRuns: st("save_runs", saveRuns), addRuns: st("add_runs", addRuns), keepRuns: st("keep_runs", addRuns+" ON CONFLICT DO NOTHING"),
	}
}

// The columns in the order in which rows.go reads them.
const (
	keyColumns = `c.gen, c.id, c.scope, c.value, c.state, c.token, c.payload, c.job, c.run, c.owner, c.until, c.expires,
	c.result, c.result_size, c.result_hash, c.attempt, c.not_before, c.closed, c.history`
	runColumns = `r.gen, r.id, r.job, r.run, r.attempt, r.not_before, r.closed, r.history, r.expires`
)

// claimFresh claims keys of which nothing is known, with their ledgers in their rows: the keys that equal their jobs' ids. It answers with one
// row of the time and the ids that were inserted (NULL for all), and one row for each row that it found in the way.
//
// LATERAL with LIMIT keeps the planner on the index: the partitions have no statistics when they are young.
const claimFresh = `WITH q AS MATERIALIZED (
	SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::int4[],
		$10::int4[], $11::int8[]) AS q (id, first, last, run_id, scope, value, payload, owner, run, attempt, lease)
), n AS MATERIALIZED (
	SELECT now, CASE WHEN abs($12::int8 - {micros}) < 60000000 THEN $12 ELSE {micros} END AS token FROM (SELECT {clock} AS now) n
), k AS MATERIALIZED (
	SELECT q.id AS asked, c.* FROM q, LATERAL (
		SELECT {keyColumns} FROM {claims} c WHERE c.id BETWEEN q.first AND q.last ORDER BY c.id LIMIT 100) c
), r AS MATERIALIZED (
	SELECT q.id AS asked, r.* FROM q, LATERAL (SELECT {runColumns} FROM {runs} r WHERE r.id = q.run_id LIMIT 1) r
), i AS (
	INSERT INTO {claims} (gen, id, scope, value, state, token, payload, run, owner, until, attempt, closed)
	SELECT {newest}, q.id, q.scope, q.value, 1, n.token, q.payload, q.run, q.owner, n.now + q.lease * interval '1 microsecond', q.attempt, false
	FROM q, n WHERE NOT EXISTS (SELECT FROM k WHERE k.asked = q.id) AND NOT EXISTS (SELECT FROM r WHERE r.asked = q.id)
	ON CONFLICT DO NOTHING
	RETURNING id
)
SELECT NULL::uuid, (SELECT CASE WHEN count(*) < cardinality($1) THEN coalesce(array_agg(id), '{}') END FROM i), {micros}, n.token,
	NULL::int4, NULL::uuid, NULL::bytea, NULL::bytea, NULL::int2, NULL::int8, NULL::bytea, NULL::bytea, NULL::int4, NULL::bytea,
	NULL::timestamptz, NULL::timestamptz, NULL::bytea, NULL::int8, NULL::bytea, NULL::int4, NULL::timestamptz, NULL::bool, NULL::bytea FROM n
UNION ALL
SELECT k.asked, NULL, NULL, 1, k.gen, k.id, k.scope, k.value, k.state, k.token, k.payload, k.job, k.run, k.owner, k.until, k.expires,
	k.result, k.result_size, k.result_hash, k.attempt, k.not_before, k.closed, k.history FROM k
UNION ALL
SELECT r.asked, NULL, NULL, 2, r.gen, r.id, NULL, NULL, NULL, NULL, NULL, r.job, r.run, NULL, NULL, r.expires,
	NULL, NULL, NULL, r.attempt, r.not_before, r.closed, r.history FROM r`

// few is always true. The planner takes it for rare, and so does not think of joins that read all of a table: a plan is kept while
// the newest partition grows from nothing to millions of rows. The statement guard serves the same end.
const few = `WHERE q.run = q.run + 0`

// held joins a held claim; the id stands for scope and value, whose bytes were compared when the token was given.
const held = `c.id = q.id AND c.token = q.token AND c.run = q.run AND c.state = 1 AND c.job IS NOT DISTINCT FROM q.job`

// The ends of claims whose ledger lies in their row. They answer with the ids that were held, NULL for all.
const (
	complete = `WITH done AS (
	UPDATE {claims} c SET state = 4, until = NULL, expires = {clock} + q.retention * interval '1 microsecond',
		result = q.result, result_size = q.size, result_hash = q.hash
	FROM (SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int4[], $4::bytea[], $5::int8[], $6::bytea[], $7::int8[], $8::bytea[])
		AS q (id, token, run, job, retention, result, size, hash) {few}) q
	WHERE {held} AND c.attempt IS NOT NULL RETURNING c.id
) SELECT CASE WHEN count(*) < cardinality($1) THEN coalesce(array_agg(id), '{}') END FROM done`

	extend = `WITH done AS (
	UPDATE {claims} c SET until = {clock} + q.lease * interval '1 microsecond'
	FROM (SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int4[], $4::bytea[], $5::int8[]) AS q (id, token, run, job, lease) {few}) q
	WHERE {held} RETURNING c.id
) SELECT CASE WHEN count(*) < cardinality($1) THEN coalesce(array_agg(id), '{}') END FROM done`

	abandon = `WITH done AS (
	UPDATE {claims} c SET state = 0, until = NULL, attempt = greatest(c.attempt - 1, 0),
		not_before = {clock} + q.delay * interval '1 microsecond'
	FROM (SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int4[], $4::bytea[], $5::int8[]) AS q (id, token, run, job, delay) {few}) q
	WHERE {held} AND c.attempt IS NOT NULL RETURNING c.id
) SELECT CASE WHEN count(*) < cardinality($1) THEN coalesce(array_agg(id), '{}') END FROM done`
)

// Everything else loads the rows, changes them in Go and saves them.
const (
	readKeyRows = `SELECT c.* FROM unnest($1::uuid[], $2::uuid[]) AS q (first, last), LATERAL (
	SELECT {keyColumns} FROM {claims} c WHERE c.id BETWEEN q.first AND q.last ORDER BY c.id LIMIT 1000`
	readRunRows = `SELECT r.* FROM unnest($1::uuid[]) AS q (id), LATERAL (SELECT {runColumns} FROM {runs} r WHERE r.id = q.id LIMIT 1`

	readKey  = readKeyRows + `) c`
	loadKeys = readKeyRows + ` FOR UPDATE) c`
	readRuns = readRunRows + `) r`
	loadRuns = readRunRows + ` FOR UPDATE) r`

	keyValues = `(SELECT * FROM unnest($1::int4[], $2::int4[], $3::uuid[], $4::bytea[], $5::bytea[], $6::int4[], $7::int8[], $8::bytea[], $9::bytea[], $10::int4[],
	$11::bytea[], $12::timestamptz[], $13::timestamptz[], $14::bytea[], $15::int8[], $16::bytea[], $17::int4[], $18::timestamptz[],
	$19::bool[], $20::bytea[]) AS q (old, gen, id, scope, value, state, token, payload, job, run, owner, until, expires,
	result, result_size, result_hash, attempt, not_before, closed, history) {few}) q`

	saveKeys = `UPDATE {claims} c SET gen = q.gen, state = q.state, token = q.token, payload = q.payload, job = q.job, run = q.run, owner = q.owner,
	until = q.until, expires = q.expires, result = q.result, result_size = q.result_size, result_hash = q.result_hash,
	attempt = q.attempt, not_before = q.not_before, closed = q.closed, history = q.history
FROM ` + keyValues + ` WHERE c.gen = q.old AND c.id = q.id`

	addKeys = `INSERT INTO {claims} (gen, id, scope, value, state, token, payload, job, run, owner, until, expires,
	result, result_size, result_hash, attempt, not_before, closed, history)
SELECT gen, id, scope, value, state, token, payload, job, run, owner, until, expires,
	result, result_size, result_hash, attempt, not_before, closed, history FROM ` + keyValues

	runValues = `(SELECT * FROM unnest($1::int4[], $2::int4[], $3::uuid[], $4::bytea[], $5::int4[], $6::int4[], $7::timestamptz[], $8::bool[], $9::bytea[],
	$10::timestamptz[]) AS q (old, gen, id, job, run, attempt, not_before, closed, history, expires) {few}) q`

	saveRuns = `UPDATE {runs} r SET gen = q.gen, attempt = q.attempt, not_before = q.not_before, closed = q.closed, history = q.history,
	expires = q.expires
FROM ` + runValues + ` WHERE r.gen = q.old AND r.id = q.id`

	addRuns = `INSERT INTO {runs} (gen, id, job, run, attempt, not_before, closed, history, expires)
SELECT gen, id, job, run, attempt, not_before, closed, history, expires FROM ` + runValues
)
