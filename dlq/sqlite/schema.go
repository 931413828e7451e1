package sqlite

import (
	"strconv"
	"strings"
)

// migrations are the tables' versions. Only append.
//
// Times are microseconds since 1970; NULL is an unknown time.
var migrations = []string{`
CREATE TABLE caisson_dead_letters (
	seq             INTEGER PRIMARY KEY,
	id              TEXT    NOT NULL UNIQUE,
	job             TEXT    NOT NULL,
	run             INTEGER NOT NULL,
	state           TEXT    NOT NULL,
	queue           TEXT    NOT NULL,
	kind            TEXT    NOT NULL,
	key             TEXT    NOT NULL,
	destination     TEXT    NOT NULL,
	cause           TEXT    NOT NULL,
	fingerprint     TEXT    NOT NULL,
	attempt_count   INTEGER NOT NULL,
	enqueued_at     INTEGER,
	first_failed_at INTEGER,
	last_failed_at  INTEGER,
	stored_at       INTEGER NOT NULL,
	changed_at      INTEGER NOT NULL,
	owner           TEXT,             -- of the reservation
	reserved_until  INTEGER,
	size            INTEGER NOT NULL, -- of the body
	error           TEXT    NOT NULL,
	attempts        TEXT              -- JSON
);
CREATE INDEX caisson_dead_letters_list ON caisson_dead_letters (state, stored_at);
CREATE INDEX caisson_dead_letters_all ON caisson_dead_letters (stored_at);
CREATE INDEX caisson_dead_letters_groups ON caisson_dead_letters (state, kind, destination, cause, fingerprint, stored_at);
CREATE INDEX caisson_dead_letters_held ON caisson_dead_letters (destination, stored_at) WHERE state = 'held';
CREATE INDEX caisson_dead_letters_changed ON caisson_dead_letters (changed_at) WHERE state <> 'held';
CREATE TABLE caisson_dead_messages (
	seq     INTEGER PRIMARY KEY,
	body    BLOB,
	headers BLOB
);

-- How many entries are dead by queue and cause, and held by destination. Triggers keep it, so that no statement can forget to.
CREATE TABLE caisson_dead_depth (
	state       TEXT    NOT NULL,
	queue       TEXT    NOT NULL,
	cause       TEXT    NOT NULL,
	destination TEXT    NOT NULL,
	entries     INTEGER NOT NULL,
	PRIMARY KEY (state, queue, cause, destination)
) WITHOUT ROWID;
` + countIn("insert", "INSERT", "new", 1) + countIn("leave", "UPDATE OF state", "old", -1) +
	countIn("enter", "UPDATE OF state", "new", 1) + countIn("delete", "DELETE", "old", -1), `
ALTER TABLE caisson_dead_letters ADD COLUMN fifo_group TEXT NOT NULL DEFAULT '';
`, `
ALTER TABLE caisson_dead_letters ADD COLUMN closed_by TEXT NOT NULL DEFAULT '';
CREATE TABLE caisson_dlq_audit (
	seq        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL UNIQUE,
	action     TEXT    NOT NULL,
	actor      TEXT    NOT NULL,
	filter     TEXT    NOT NULL,
	planned    INTEGER NOT NULL,
	done       INTEGER NOT NULL DEFAULT 0,
	failed     INTEGER NOT NULL DEFAULT 0,
	refused    INTEGER NOT NULL DEFAULT 0,
	state      TEXT    NOT NULL,
	problem    TEXT    NOT NULL DEFAULT '',
	silence    INTEGER NOT NULL, -- nanoseconds
	started_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	ended_at   INTEGER
);
CREATE INDEX caisson_dlq_audit_list ON caisson_dlq_audit (started_at);
`}

// countIn returns a trigger that adds n to the depth of a row's state.
func countIn(name, event, row string, n int) string {
	return strings.NewReplacer("$name", name, "$event", event, "$row", row, "$n", strconv.Itoa(n)).Replace(`
CREATE TRIGGER caisson_dead_depth_$name AFTER $event ON caisson_dead_letters WHEN $row.state IN ('dead', 'held') BEGIN
	INSERT INTO caisson_dead_depth VALUES ($row.state, iif($row.state = 'dead', $row.queue, ''), iif($row.state = 'dead', $row.cause, ''),
		iif($row.state = 'held', $row.destination, ''), $n)
	ON CONFLICT DO UPDATE SET entries = entries + excluded.entries;
	DELETE FROM caisson_dead_depth WHERE state = $row.state AND queue = iif($row.state = 'dead', $row.queue, '')
		AND cause = iif($row.state = 'dead', $row.cause, '') AND destination = iif($row.state = 'held', $row.destination, '') AND entries = 0;
END;`)
}

const (
	insertEntry = `INSERT INTO caisson_dead_letters (id, job, run, state, queue, kind, key, destination, cause, fingerprint, attempt_count,
	enqueued_at, first_failed_at, last_failed_at, stored_at, changed_at, size, error, attempts, fifo_group)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
	insertMessage = `INSERT INTO caisson_dead_messages (seq, body, headers) VALUES (?, ?, ?)`
	deleteEntry   = `DELETE FROM caisson_dead_letters WHERE seq = ?`
	deleteMessage = `DELETE FROM caisson_dead_messages WHERE seq = ?`

	selectState = `SELECT seq, state, owner FROM caisson_dead_letters WHERE id = ?`
	freeEntry   = `UPDATE caisson_dead_letters SET owner = NULL, reserved_until = NULL WHERE seq = ?`
	closeEntry  = `UPDATE caisson_dead_letters SET closed_by = owner, owner = NULL, reserved_until = NULL, state = 'replayed', changed_at = ?
	WHERE seq = ?`

	entryColumns = `d.seq, d.id, d.job, d.run, d.state, d.queue, d.kind, d.key, d.destination, d.cause, d.fingerprint, d.attempt_count,
	d.enqueued_at, d.first_failed_at, d.last_failed_at, d.stored_at, d.changed_at, d.error, d.attempts, d.fifo_group, d.closed_by`
	selectEntry   = `SELECT ` + entryColumns + ` FROM caisson_dead_letters d WHERE d.id = ?`
	selectMessage = `SELECT body, headers FROM caisson_dead_messages WHERE seq = ?`

	// unreserved takes the present time.
	unreserved = `(d.reserved_until IS NULL OR d.reserved_until <= ?)`

	reserveEntry = `UPDATE caisson_dead_letters SET owner = ?, reserved_until = ? WHERE seq = ?`

	expireEntries = `DELETE FROM caisson_dead_letters WHERE seq IN (SELECT d.seq FROM caisson_dead_letters d
	WHERE d.state <> 'held' AND d.changed_at <= ? AND ` + unreserved + ` ORDER BY d.changed_at LIMIT ?) RETURNING seq`

	auditColumns = `seq, id, action, actor, filter, planned, done, failed, refused, state, problem, silence, started_at, updated_at, ended_at`
	beginAudit   = `INSERT INTO caisson_dlq_audit (id, action, actor, filter, planned, state, silence, started_at, updated_at)
VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET actor = excluded.actor, filter = excluded.filter, planned = excluded.planned, state = 'running', problem = '',
	silence = excluded.silence, updated_at = excluded.updated_at, ended_at = NULL WHERE action = excluded.action`
	updateAudit = `UPDATE caisson_dlq_audit SET state = ?, done = ?, failed = ?, refused = ?, problem = ?, updated_at = ?, ended_at = ? WHERE id = ?`
	selectAudit = `SELECT ` + auditColumns + ` FROM caisson_dlq_audit WHERE id = ?`
	listAudits  = `SELECT ` + auditColumns + ` FROM caisson_dlq_audit WHERE (started_at, seq) < (?, ?) ORDER BY started_at DESC, seq DESC LIMIT ?`
	expireAudit = `DELETE FROM caisson_dlq_audit WHERE updated_at <= ?`

	depthDead = `SELECT queue, cause, entries FROM caisson_dead_depth WHERE state = 'dead'`
	depthHeld = `SELECT destination, entries, (SELECT min(d.stored_at) FROM caisson_dead_letters d
	WHERE d.state = 'held' AND d.destination = caisson_dead_depth.destination) FROM caisson_dead_depth WHERE state = 'held'`
)
