package postgres

import "github.com/caisson-go/caisson/internal/storage/pgdb"

const (
	lettersTable  = "dead_letters"
	messagesTable = "dead_messages"

	// Compiling a plan over many partitions takes longer than running it. Sent as one message.
	beginRead = `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL jit = off`
	// The planner expects a filter by JSON to find little, and would look up entries one by one.
	beginSearch = beginRead + `; SET LOCAL enable_nestloop = off`
	// Many dead letters may come between two runs of autovacuum. The planner then takes the table for small, and would sort all rows for each
	// page or chunk instead of walking the index in order.
	inOrder    = `SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off`
	beginPage  = beginRead + `; ` + inOrder
	beginWrite = pgdb.BeginWrite + `; SET LOCAL jit = off; `

	// What is searched for in all generations and inserted into the newest: see [pgdb.Generations].
	insertEntries = `WITH input AS (
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[],
		$10::bytea[], $11::bytea[], $12::bigint[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::smallint[], $17::text[],
		$18::bytea[], $19::text[], $20::bytea[], $21::bytea[], $22::text[])
	AS i(id, job, run, state, queue, kind, key, destination, fifo_group, cause, fingerprint, attempt_count, enqueued_at, first_failed_at,
		last_failed_at, json, error, error_bytes, attempts, body, headers, payload)
), fresh AS (
	INSERT INTO {letters} (gen, seq, id, job, run, state, queue, kind, key, destination, fifo_group, cause, fingerprint, attempt_count,
		enqueued_at, first_failed_at, last_failed_at, stored_at, changed_at, size, json, error, error_bytes, attempts)
	SELECT {newest letters}, {next}, i.id, i.job, i.run, i.state, i.queue, i.kind, i.key, i.destination, i.fifo_group, i.cause, i.fingerprint,
		i.attempt_count, i.enqueued_at, i.first_failed_at, i.last_failed_at, t.at, t.at, length(i.body), i.json, i.error, i.error_bytes, i.attempts
	FROM input i CROSS JOIN (SELECT clock_timestamp() AS at) t
	WHERE NOT EXISTS (SELECT FROM {letters} d WHERE d.id = i.id)
	ON CONFLICT DO NOTHING RETURNING id, seq
), messages AS (
	INSERT INTO {messages} (gen, seq, body, headers, payload)
	SELECT {newest messages}, f.seq, i.body, i.headers, i.payload::jsonb FROM fresh f JOIN input i ON i.id = f.id
)
SELECT id FROM fresh`

	// findEntry also says whether the entry has the body $2.
	findEntry = `SELECT d.seq, d.state, coalesce(m.body, '') = $2::bytea FROM {letters} d LEFT JOIN {messages} m ON m.seq = d.seq
WHERE d.id = $1::bytea FOR UPDATE OF d`

	freeEntries   = `UPDATE {letters} SET owner = NULL, reserved_until = NULL WHERE seq = ANY ($1::bigint[])`
	removeEntries = `WITH gone AS (DELETE FROM {letters} WHERE seq = ANY ($1::bigint[]) RETURNING seq)
DELETE FROM {messages} WHERE seq IN (SELECT seq FROM gone)`
	lockEntries  = `SELECT seq, id, state, owner FROM {letters} WHERE id = ANY ($1::bytea[]) ORDER BY id FOR UPDATE`
	closeEntries = `UPDATE {letters} SET gen = {newest letters}, state = 'replayed', changed_at = clock_timestamp(), closed_by = owner, owner = NULL,
	reserved_until = NULL WHERE seq = ANY ($1::bigint[])`

	entryColumns = `d.seq, d.id, d.job, d.run, d.state, d.queue, d.kind, d.key, d.destination, d.fifo_group, d.cause, d.fingerprint, d.attempt_count,
	d.enqueued_at, d.first_failed_at, d.last_failed_at, d.stored_at, d.changed_at, d.closed_by, d.error, d.error_bytes, d.attempts`
	getEntry = `SELECT {entry}, m.body, m.headers FROM {letters} d LEFT JOIN {messages} m ON m.seq = d.seq WHERE d.id = $1::bytea`
	// Each message is looked up by itself, whatever the planner knows of the tables.
	getEntries = `SELECT {entry}, m.body, m.headers FROM unnest($1::bytea[]) AS q (id), LATERAL (SELECT * FROM {letters} d WHERE d.id = q.id OFFSET 0) d
	LEFT JOIN LATERAL (SELECT m.body, m.headers FROM {messages} m WHERE m.seq = d.seq OFFSET 0) m ON true`

	// takeEntries reserves. An entry in an older generation may be past its retention and about to be dropped: it moves to the newest.
	takeEntries = `UPDATE {letters} d SET owner = $2::bytea, reserved_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
	gen = CASE d.state WHEN 'held' THEN d.gen ELSE {newest letters} END WHERE d.seq = ANY ($1::bigint[]) RETURNING {entry}`
	selectMessages = `SELECT seq, body, headers FROM {messages} WHERE seq = ANY ($1::bigint[])`
	selectSamples  = `SELECT seq, coalesce(error_bytes, convert_to(error, 'UTF8')) FROM {letters} WHERE seq = ANY ($1::bigint[])`

	// unreserved is the condition of entries that may be taken. The time is asked once.
	unreserved = `(d.reserved_until IS NULL OR d.reserved_until <= (SELECT clock_timestamp()))`

	deadDepth = `SELECT queue, cause, sum(entries)::bigint, count(*) FROM {depth}
WHERE state = 'dead' AND gen IN (SELECT gen FROM {generations} WHERE family = 'dead_letters') GROUP BY queue, cause`
	heldDepth = `SELECT x.destination, x.entries, (SELECT min(d.stored_at) FROM {letters} d WHERE d.state = 'held' AND d.destination = x.destination), x.changes
FROM (SELECT destination, sum(entries)::bigint AS entries, count(*) AS changes FROM {depth}
	WHERE state = 'held' AND gen IN (SELECT gen FROM {generations} WHERE family = 'dead_letters') GROUP BY destination) x`
	// compactDepth makes one row of many. Rows that another transaction has locked are left.
	compactDepth = `WITH gone AS (
	DELETE FROM {depth} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {depth} LIMIT 20000 FOR UPDATE SKIP LOCKED))
	RETURNING gen, state, queue, cause, destination, entries
)
INSERT INTO {depth} SELECT gen, state, queue, cause, destination, sum(entries) FROM gone GROUP BY 1, 2, 3, 4, 5 HAVING sum(entries) <> 0`
	forgetDepth = `DELETE FROM {depth} WHERE gen < (SELECT min(gen) FROM {generations} WHERE family = 'dead_letters')`

	// neededEntry and neededMessage are conditions of rows that must not be dropped. %d is the retention in microseconds. A message without
	// an entry never gets one again.
	neededEntry   = `state = 'held' OR reserved_until > {now} OR changed_at > {now} - %d * interval '1 microsecond'`
	neededMessage = `seq IN (SELECT d.seq FROM {letters} d)`

	expireEntries = `WITH gone AS (
	DELETE FROM {letters} WHERE seq IN (SELECT d.seq FROM {letters} d
		WHERE d.state <> 'held' AND d.changed_at <= clock_timestamp() - $1::bigint * interval '1 microsecond' AND ` + unreserved + `
		ORDER BY d.changed_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) RETURNING seq
), messages AS (DELETE FROM {messages} WHERE seq IN (SELECT seq FROM gone))
SELECT count(*) FROM gone`
	expireAudits = `DELETE FROM {audit} WHERE updated_at <= clock_timestamp() - $1::bigint * interval '1 microsecond'`

	auditColumns = `seq, id, action, actor, filter, planned, done, failed, refused, state, problem, silence, started_at, updated_at, ended_at, clock_timestamp()`
	beginAudit   = `INSERT INTO {audit} AS a (id, action, actor, filter, planned, state, silence, started_at, updated_at)
SELECT $1::bytea, $2::bytea, $3::bytea, $4::bytea, $5::bigint, 'running', $6::bigint, t.at, t.at FROM (SELECT clock_timestamp() AS at) t
ON CONFLICT (id) DO UPDATE SET actor = excluded.actor, filter = excluded.filter, planned = excluded.planned, state = 'running', problem = '',
	silence = excluded.silence, updated_at = excluded.updated_at, ended_at = NULL WHERE a.action = excluded.action
RETURNING ` + auditColumns
	updateAudit = `UPDATE {audit} SET state = $2::text, done = $3::bigint, failed = $4::bigint, refused = $5::bigint, problem = $6::bytea,
	updated_at = t.at, ended_at = CASE WHEN $2::text = 'running' THEN NULL ELSE t.at END FROM (SELECT clock_timestamp() AS at) t WHERE id = $1::bytea`
	selectAudit = `SELECT ` + auditColumns + ` FROM {audit} WHERE id = $1::bytea`
	listAudits  = `SELECT ` + auditColumns + ` FROM {audit} WHERE $1::timestamptz IS NULL OR (started_at, seq) < ($1::timestamptz, $2::bigint)
ORDER BY started_at DESC, seq DESC LIMIT $3::bigint`
)
