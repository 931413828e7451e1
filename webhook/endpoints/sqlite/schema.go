package sqlite

// migrations are the tables' versions. Only append. Names are blobs: they may hold any bytes. Times are nanoseconds since 1970; NULL is none.
var migrations = []string{`
CREATE TABLE caisson_webhook_endpoints (
	seq        INTEGER PRIMARY KEY,
	id         BLOB    NOT NULL UNIQUE,
	tenant     BLOB    NOT NULL,
	state      TEXT    NOT NULL,
	reason     BLOB    NOT NULL,
	since      INTEGER,
	settings   BLOB    NOT NULL,
	sealed     BLOB    NOT NULL,
	key        BLOB    NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	revision   INTEGER NOT NULL UNIQUE,
	deleted    INTEGER NOT NULL
);
CREATE INDEX caisson_webhook_endpoints_tenant ON caisson_webhook_endpoints (tenant, id) WHERE deleted = 0;
CREATE INDEX caisson_webhook_endpoints_deleted ON caisson_webhook_endpoints (updated_at) WHERE deleted = 1;

-- Which endpoint has which secret, by a keyed fingerprint.
CREATE TABLE caisson_webhook_endpoint_secrets (
	fingerprint BLOB PRIMARY KEY,
	endpoint    BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX caisson_webhook_endpoint_secrets_endpoint ON caisson_webhook_endpoint_secrets (endpoint);

CREATE TABLE caisson_webhook_endpoint_health (
	endpoint      BLOB    PRIMARY KEY,
	failures      INTEGER NOT NULL,
	failing_since INTEGER,
	last_success  INTEGER,
	last_failure  INTEGER,
	recovered_at  INTEGER
) WITHOUT ROWID;

-- The last revision. It is not that of the newest record: that one may be a tombstone that was removed.
CREATE TABLE caisson_webhook_endpoint_revision (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	revision INTEGER NOT NULL
);
INSERT INTO caisson_webhook_endpoint_revision VALUES (1, 0);
`}

const (
	nextRevision = `UPDATE caisson_webhook_endpoint_revision SET revision = revision + 1 RETURNING revision`

	columns = `id, tenant, state, reason, since, settings, sealed, key, created_at, updated_at, revision, deleted`

	insertRecord = `INSERT INTO caisson_webhook_endpoints (` + columns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, state = excluded.state, reason = excluded.reason, since = excluded.since,
	settings = excluded.settings, sealed = excluded.sealed, key = excluded.key, created_at = excluded.created_at,
	updated_at = excluded.updated_at, revision = excluded.revision, deleted = 0
WHERE deleted = 1`
	updateRecord = `UPDATE caisson_webhook_endpoints SET tenant = ?, state = ?, reason = ?, since = ?, settings = ?, sealed = ?, key = ?,
	updated_at = ?, revision = ? WHERE id = ? AND revision = ? AND deleted = 0`
	buryRecord = `UPDATE caisson_webhook_endpoints SET state = '', reason = x'', since = NULL, settings = x'', sealed = x'', key = x'',
	updated_at = ?, revision = ?, deleted = 1 WHERE id = ? AND revision = ? AND deleted = 0`
	purgeRecords = `DELETE FROM caisson_webhook_endpoints WHERE deleted = 1 AND updated_at < ?`

	selectRecord  = `SELECT ` + columns + ` FROM caisson_webhook_endpoints WHERE id = ? AND deleted = 0`
	selectExists  = `SELECT 1 FROM caisson_webhook_endpoints WHERE id = ? AND deleted = 0`
	selectRecords = `SELECT ` + columns + ` FROM caisson_webhook_endpoints WHERE deleted = 0 AND id > ?`
	selectChanges = `SELECT ` + columns + ` FROM caisson_webhook_endpoints WHERE revision > ? ORDER BY revision LIMIT ?+0`

	freeSecrets = `DELETE FROM caisson_webhook_endpoint_secrets WHERE endpoint = ?`
	takeSecret  = `INSERT INTO caisson_webhook_endpoint_secrets (fingerprint, endpoint) VALUES (?, ?) ON CONFLICT (fingerprint) DO NOTHING`

	selectHealth = `SELECT failures, failing_since, last_success, last_failure, recovered_at FROM caisson_webhook_endpoint_health WHERE endpoint = ?`
	upsertHealth = `INSERT INTO caisson_webhook_endpoint_health (endpoint, failures, failing_since, last_success, last_failure, recovered_at)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (endpoint) DO UPDATE SET failures = excluded.failures, failing_since = excluded.failing_since,
	last_success = excluded.last_success, last_failure = excluded.last_failure, recovered_at = excluded.recovered_at`
	dropHealth = `DELETE FROM caisson_webhook_endpoint_health WHERE endpoint = ?`
)
