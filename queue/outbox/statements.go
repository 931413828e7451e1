package outbox

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements are the package's SQL with the names of one schema's tables in it.
type statements struct {
	insert, tell                  string
	told, pacing                  string
	claim, retries, fresh, nextAt string
	published, retried            string
	move, again, wake, release    string
	sizes, turn                   string
	tables, lock, empty, truncate [2]string
	orphans                       string
	stats, stuck, retry, discard  string
}

// sqlPlan makes the planner use the indexes whatever it thinks of the tables' sizes, which change faster than its statistics and its plans.
const sqlPlan = `SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)`

// sqlLoose has a lease committed without waiting for the disk: losing one in a crash of the server has jobs published twice at the most.
const sqlLoose = `SET LOCAL synchronous_commit = off`

// Statements that read in a transaction see what committed before each of them, whatever the database's default is.
const (
	begin  = `BEGIN ISOLATION LEVEL READ COMMITTED`
	commit = `COMMIT`
)

const sqlInsert = `INSERT INTO {outbox} (turn, shard, due_at, queue, order_key, message_group, dedup_id, headers, body)
SELECT (SELECT t.turn FROM {turn} t), j.shard,
  CASE WHEN j.delay > 0 THEN clock_timestamp() + j.delay * interval '1 microsecond' END, j.queue, j.key, j.message_group, j.dedup, j.headers, j.body
FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[])
  WITH ORDINALITY AS j (shard, queue, delay, key, message_group, dedup, headers, body, n)
ORDER BY j.n
RETURNING id`

// Sent after the INSERT, when the transaction has its number: see [pacing]. $1 is the channel.
const sqlTell = `SELECT pg_notify($1::text, '') FROM {told} WHERE last_value > extract(epoch FROM clock_timestamp())`

// For so many seconds relays are notified, unless one of them says so again.
const sqlArm = `SELECT setval($1::text::regclass, extract(epoch FROM clock_timestamp())::bigint + 60)`

const sqlDisarm = `SELECT setval($1::text::regclass, 1)`

// A transaction number that is above those of all transactions that have one already.
const sqlHorizon = `SELECT pg_current_xact_id()::text::bigint`

// Whether relays are notified, and a number below which all transactions have ended.
const sqlPacing = `SELECT last_value > extract(epoch FROM clock_timestamp()), pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM {told}`

// $1 token, $2 lease in microseconds, $3 how many, $4 queues to leave out. Ordered by who has waited longest.
const sqlClaim = `WITH free AS (
  SELECT s.n FROM {shards} s
  WHERE s.leased_until <= clock_timestamp() AND (
    EXISTS (SELECT FROM {outbox} o WHERE o.shard = s.n AND o.queue <> ALL ($4::text[])) OR
    EXISTS (SELECT FROM {waiting} w WHERE w.shard = s.n AND w.next_at <= clock_timestamp() AND w.queue <> ALL ($4::text[])))
  ORDER BY s.served_at LIMIT $3::int FOR UPDATE SKIP LOCKED)
UPDATE {shards} s SET token = $1::bigint, leased_until = clock_timestamp() + $2::bigint * interval '1 microsecond', served_at = clock_timestamp()
FROM free WHERE s.n = free.n`

// rowColumns are what a relay reads of a job in either table. The last but one says how long the job is not due yet.
const rowColumns = `o.shard, o.id, o.queue, o.order_key, o.message_group, o.dedup_id, o.headers, o.body,
  CASE WHEN o.due_at > clock_timestamp() THEN ceil(extract(epoch FROM o.due_at - clock_timestamp()) * 1000000)::bigint ELSE 0 END AS delay`

// $1 token, $2 most rows, $3 most bytes, $4 queues to leave out. The waiting jobs that are due, each with those of its key behind it.
const sqlRetries = `WITH heads AS MATERIALIZED (
  SELECT h.* FROM {shards} s CROSS JOIN LATERAL (
    SELECT w.shard, w.id, w.queue, w.order_key FROM {waiting} w
    WHERE w.shard = s.n AND w.next_at <= clock_timestamp() AND w.queue <> ALL ($4::text[])
    ORDER BY w.next_at LIMIT $2::int) h
  WHERE s.token = $1::bigint),
chosen AS MATERIALIZED (
  SELECT shard, id FROM heads WHERE order_key IS NULL
  UNION SELECT b.shard, b.id FROM (SELECT DISTINCT shard, queue, order_key FROM heads WHERE order_key IS NOT NULL) h
    CROSS JOIN LATERAL (SELECT w.shard, w.id FROM {waiting} w
      WHERE w.shard = h.shard AND w.queue = h.queue AND w.order_key = h.order_key ORDER BY w.id LIMIT $2::int) b)
SELECT shard, id, queue, order_key, message_group, dedup_id, headers, body, delay, attempts, false FROM (
  SELECT ` + rowColumns + `, o.attempts, sum(coalesce(octet_length(o.body), 0)) OVER (ORDER BY o.id) - coalesce(octet_length(o.body), 0) AS ahead
  FROM {waiting} o JOIN chosen USING (shard, id) ORDER BY o.id LIMIT $2::int) r
WHERE ahead < $3::bigint ORDER BY id`

// The same of fresh jobs. The last column says whether jobs of its key wait.
const sqlFresh = `SELECT shard, id, queue, order_key, message_group, dedup_id, headers, body, delay, 0, order_key IS NOT NULL AND EXISTS (
    SELECT FROM {waiting} w WHERE w.shard = r.shard AND w.queue = r.queue AND w.order_key = r.order_key) FROM (
  SELECT ` + rowColumns + `, sum(coalesce(octet_length(o.body), 0)) OVER (ORDER BY o.id) - coalesce(octet_length(o.body), 0) AS ahead
  FROM {shards} s CROSS JOIN LATERAL (
    SELECT o.* FROM {outbox} o WHERE o.shard = s.n AND o.queue <> ALL ($4::text[]) ORDER BY o.id
    LIMIT (SELECT greatest(1, $2::int / count(*)) FROM {shards} WHERE token = $1::bigint)) o
  WHERE s.token = $1::bigint ORDER BY o.id LIMIT $2::int) r
WHERE ahead < $3::bigint ORDER BY id`

// In how many microseconds there may be something to do without anybody's notice: a waiting job is due, a lease of a dead relay ends.
const sqlNextAt = `SELECT coalesce(ceil(extract(epoch FROM least(
  (SELECT min(h.next_at) FROM {shards} s CROSS JOIN LATERAL (SELECT w.next_at FROM {waiting} w
    WHERE w.shard = s.n AND w.next_at > clock_timestamp() AND w.next_at < 'infinity' ORDER BY w.next_at LIMIT 1) h),
  (SELECT min(s.leased_until) FROM {shards} s WHERE s.leased_until > clock_timestamp())
) - clock_timestamp()) * 1000000), -1)::bigint`

// A job may have been moved by a relay that lost its lease, so it is deleted from both tables.
const sqlPublished = `DELETE FROM {outbox} o USING unnest($1::smallint[], $2::bigint[]) AS j (shard, id) WHERE o.shard = j.shard AND o.id = j.id`

const sqlRetried = `DELETE FROM {waiting} o USING unnest($1::smallint[], $2::bigint[]) AS j (shard, id) WHERE o.shard = j.shard AND o.id = j.id`

// held are the shards that the relay still holds: only their jobs change places. $1 token; then arrays: shard, id, attempts, error, delay in
// microseconds with -1 for infinity, parked.
const sqlHeld = `WITH held AS MATERIALIZED (SELECT n FROM {shards} WHERE token = $1::bigint ORDER BY n FOR UPDATE),
j AS MATERIALIZED (
  SELECT a.shard, a.id, a.attempts, a.error, a.parked,
    CASE WHEN a.delay < 0 THEN 'infinity'::timestamptz ELSE clock_timestamp() + a.delay * interval '1 microsecond' END AS next_at
  FROM unnest($2::smallint[], $3::bigint[], $4::int[], $5::text[], $6::bigint[], $7::boolean[]) AS a (shard, id, attempts, error, delay, parked)
  JOIN held ON held.n = a.shard)`

const sqlMove = sqlHeld + `,
gone AS (DELETE FROM {outbox} o USING j WHERE o.shard = j.shard AND o.id = j.id
  RETURNING o.shard, o.id, o.created_at, o.due_at, o.queue, o.order_key, o.message_group, o.dedup_id, o.headers, o.body)
INSERT INTO {waiting} (shard, id, created_at, due_at, queue, order_key, message_group, dedup_id, headers, body, attempts, last_error, next_at, parked)
SELECT g.*, j.attempts, j.error, j.next_at, j.parked FROM gone g JOIN j ON j.shard = g.shard AND j.id = g.id`

// A job that somebody had tried again meanwhile ([Box.Retry]) is left as it is: due, with no attempts.
const sqlAgain = sqlHeld + `
UPDATE {waiting} w SET attempts = j.attempts, last_error = j.error, tried_at = clock_timestamp(), next_at = j.next_at, parked = j.parked
FROM j WHERE w.shard = j.shard AND w.id = j.id AND w.attempts >= j.attempts - 1`

// The first job of each key becomes due. Arrays of shard, queue and key.
const sqlWake = `UPDATE {waiting} w SET next_at = clock_timestamp()
FROM unnest($1::smallint[], $2::text[], $3::bytea[]) AS k (shard, queue, key) CROSS JOIN LATERAL (
  SELECT x.id FROM {waiting} x WHERE x.shard = k.shard AND x.queue = k.queue AND x.order_key = k.key ORDER BY x.id LIMIT 1) h
WHERE w.shard = k.shard AND w.id = h.id AND w.next_at = 'infinity' AND NOT w.parked`

const sqlRelease = `UPDATE {shards} SET token = 0, leased_until = '-infinity' WHERE token = $1::bigint`

// Jobs that wait for one which is gone, as a discarded one is.
const sqlOrphans = `UPDATE {waiting} w SET next_at = clock_timestamp()
WHERE w.next_at = 'infinity' AND NOT w.parked AND NOT EXISTS (
  SELECT FROM {waiting} x WHERE x.shard = w.shard AND x.queue = w.queue AND x.order_key = w.order_key AND x.id < w.id)`

const sqlStats = `SELECT
  (SELECT count(*) FROM {outbox}), count(*) FILTER (WHERE NOT parked), count(*) FILTER (WHERE parked),
  greatest(0, coalesce(extract(epoch FROM clock_timestamp() - least(min(greatest(created_at, due_at)), (
    SELECT min(greatest(o.created_at, o.due_at)) FROM {shards} s CROSS JOIN LATERAL (
      SELECT o.created_at, o.due_at FROM {outbox} o WHERE o.shard = s.n ORDER BY o.id LIMIT 1) o)))::float8, 0))
FROM {waiting}`

const sqlStuck = `SELECT id, queue, created_at, tried_at, nullif(next_at, 'infinity'), attempts, last_error, parked, dedup_id, order_key, headers, octet_length(coalesce(body, ''))
FROM {waiting} WHERE attempts > 0 ORDER BY parked DESC, id LIMIT $1::int`

const sqlRetry = `UPDATE {waiting} SET parked = false, attempts = 0, next_at = clock_timestamp()
WHERE attempts > 0 AND (cardinality($1::bigint[]) = 0 OR id = ANY ($1::bigint[]))`

const sqlDiscard = `DELETE FROM {waiting} WHERE attempts > 0 AND id = ANY ($1::bigint[])`

// Of the tables that take turns: which takes new rows, and how many bytes the two have. $1 and $2 are their names.
const sqlSizes = `SELECT t.turn, pg_relation_size($1::text::regclass), pg_relation_size($2::text::regclass) FROM {turn} t`

// statementsOf returns the statements with the names of one schema's tables in them.
func statementsOf(schema string) statements {
	name := func(table string) string { return pgx.Identifier{schema, table}.Sanitize() }
	r := strings.NewReplacer("{outbox}", name("outbox"), "{waiting}", name("outbox_waiting"), "{shards}", name("outbox_shards"),
		"{turn}", name("outbox_turn"), "{told}", name("outbox_told"))
	s := statements{
		insert: r.Replace(sqlInsert), tell: r.Replace(sqlTell), told: name("outbox_told"), pacing: r.Replace(sqlPacing),
		claim: r.Replace(sqlClaim), retries: r.Replace(sqlRetries), fresh: r.Replace(sqlFresh), nextAt: r.Replace(sqlNextAt),
		published: r.Replace(sqlPublished), retried: r.Replace(sqlRetried),
		move: r.Replace(sqlMove), again: r.Replace(sqlAgain), wake: r.Replace(sqlWake), release: r.Replace(sqlRelease),
		orphans: r.Replace(sqlOrphans), stats: r.Replace(sqlStats), stuck: r.Replace(sqlStuck), retry: r.Replace(sqlRetry),
		discard: r.Replace(sqlDiscard), sizes: r.Replace(sqlSizes), turn: r.Replace(`UPDATE {turn} SET turn = $1::smallint WHERE turn <> $1::smallint`),
	}
	for i, table := range turnTables {
		s.tables[i] = name(table)
		s.empty[i] = `SELECT NOT EXISTS (SELECT FROM ` + name(table) + `)`
		s.lock[i] = `LOCK TABLE ` + name(table) + ` IN ACCESS EXCLUSIVE MODE`
		s.truncate[i] = `TRUNCATE ` + name(table)
	}
	return s
}
