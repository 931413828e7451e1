package sqlite

// migrations are the tables' versions. Only append.
//
// Times are nanoseconds since 1970. until, not_before and expires are NULL for never.
var migrations = []string{`
CREATE TABLE caisson_keys (
	value       TEXT    NOT NULL,
	scope       TEXT    NOT NULL,
	state       INTEGER NOT NULL, -- 0 free, 1 claimed, 4 completed
	token       INTEGER NOT NULL,
	payload     BLOB,             -- fingerprint of the payload; NULL when the key is free for any
	job         TEXT    NOT NULL, -- the last holder
	run         INTEGER NOT NULL,
	owner       TEXT    NOT NULL,
	until       INTEGER,          -- end of the claim
	expires     INTEGER,          -- end of a completed or closed record
	result      BLOB,
	result_size INTEGER,
	result_hash BLOB,             -- set when the result was too long to keep
	attempt     INTEGER,          -- the holder's ledger; NULL when it is in caisson_runs
	not_before  INTEGER,
	closed      INTEGER,
	history     TEXT,
	PRIMARY KEY (value, scope)
) WITHOUT ROWID;
CREATE INDEX caisson_keys_expires ON caisson_keys (expires) WHERE expires IS NOT NULL;
CREATE TABLE caisson_runs (
	job        TEXT    NOT NULL,
	run        INTEGER NOT NULL,
	attempt    INTEGER NOT NULL,
	not_before INTEGER,
	closed     INTEGER NOT NULL,
	history    TEXT,
	expires    INTEGER,
	PRIMARY KEY (job, run)
) WITHOUT ROWID;
CREATE INDEX caisson_runs_expires ON caisson_runs (expires) WHERE expires IS NOT NULL;
`, `
CREATE INDEX caisson_keys_job ON caisson_keys (job) WHERE job <> value;
`}

// The common case, one statement each: the ledger is in the key's row.
const (
	// insertFresh claims a key that equals the job's id if nothing is known of either.
	insertFresh = `INSERT INTO caisson_keys (value, scope, state, token, payload, job, run, owner, until, attempt, closed)
SELECT ?1, ?2, 1, ?3, ?4, ?1, ?5, ?6, ?7, ?8, 0
WHERE NOT EXISTS (SELECT 1 FROM caisson_keys WHERE value = ?1) AND NOT EXISTS (SELECT 1 FROM caisson_runs WHERE job = ?1 AND run = ?5)`

	heldBy = ` WHERE value = ?1 AND scope = ?2 AND token = ?3 AND job = ?4 AND run = ?5 AND state = 1`

	extendHeld   = `UPDATE caisson_keys SET until = ?6` + heldBy
	completeHeld = `UPDATE caisson_keys SET state = 4, until = NULL, expires = ?6, result = ?7, result_size = ?8, result_hash = ?9` +
		heldBy + ` AND attempt IS NOT NULL`
	abandonHeld = `UPDATE caisson_keys SET state = 0, until = NULL, attempt = max(attempt - 1, 0), not_before = ?6` +
		heldBy + ` AND attempt IS NOT NULL`
)

// Everything else loads the rows, changes them in Go and saves them.
const (
	selectKey = `SELECT state, token, payload, job, run, owner, until, expires, result, result_size, result_hash,
	attempt, not_before, closed, history
FROM caisson_keys WHERE value = ? AND scope = ?`

	saveKey = `INSERT INTO caisson_keys (value, scope, state, token, payload, job, run, owner, until, expires, result, result_size, result_hash,
	attempt, not_before, closed, history)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (value, scope) DO UPDATE SET state = excluded.state, token = excluded.token, payload = excluded.payload, job = excluded.job,
	run = excluded.run, owner = excluded.owner, until = excluded.until, expires = excluded.expires, result = excluded.result,
	result_size = excluded.result_size, result_hash = excluded.result_hash, attempt = excluded.attempt, not_before = excluded.not_before,
	closed = excluded.closed, history = excluded.history`

	selectRun = `SELECT attempt, not_before, closed, history, expires FROM caisson_runs WHERE job = ? AND run = ?`

	saveRun = `INSERT INTO caisson_runs (job, run, attempt, not_before, closed, history, expires) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job, run) DO UPDATE SET attempt = excluded.attempt, not_before = excluded.not_before, closed = excluded.closed,
	history = excluded.history, expires = excluded.expires`

	// selectElsewhere finds a run's ledger in the row of another key, and clearElsewhere takes it out there.
	selectElsewhere = `SELECT attempt, not_before, closed, history, expires FROM caisson_keys
WHERE value = ?1 AND job = ?1 AND run = ?2 AND attempt IS NOT NULL`
	clearElsewhere = `UPDATE caisson_keys SET attempt = NULL, not_before = NULL, closed = NULL, history = NULL
WHERE value = ?1 AND job = ?1 AND run = ?2 AND attempt IS NOT NULL`

	expireKeys = `DELETE FROM caisson_keys WHERE (value, scope) IN
	(SELECT value, scope FROM caisson_keys WHERE expires <= ? ORDER BY expires LIMIT ?)`
	expireRuns = `DELETE FROM caisson_runs WHERE (job, run) IN
	(SELECT job, run FROM caisson_runs WHERE expires <= ? ORDER BY expires LIMIT ?)`
)
