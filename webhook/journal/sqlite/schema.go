package sqlite

// migrations are the tables' versions. Only append. Times are microseconds since 1970.
var migrations = []string{`
CREATE TABLE caisson_webhook_events (
	seq          INTEGER PRIMARY KEY,
	tenant       TEXT    NOT NULL,
	id           TEXT    NOT NULL,
	type         TEXT    NOT NULL,
	content_type TEXT    NOT NULL,
	at           INTEGER NOT NULL,
	body         BLOB    NOT NULL,
	UNIQUE (tenant, id)
);
CREATE INDEX caisson_webhook_events_list ON caisson_webhook_events (tenant, at, seq);
CREATE INDEX caisson_webhook_events_at ON caisson_webhook_events (at);

CREATE TABLE caisson_webhook_attempts (
	seq        INTEGER PRIMARY KEY,
	at         INTEGER NOT NULL,
	tenant     TEXT    NOT NULL,
	endpoint   TEXT    NOT NULL,
	event      TEXT    NOT NULL,
	job        TEXT    NOT NULL,
	number     INTEGER NOT NULL,
	status     INTEGER NOT NULL,
	phase      TEXT    NOT NULL,
	duration   INTEGER NOT NULL, -- nanoseconds
	excerpt    TEXT    NOT NULL,
	error      TEXT    NOT NULL,
	request_id TEXT    NOT NULL,
	resent     INTEGER NOT NULL,
	cut_off    INTEGER NOT NULL
);
CREATE INDEX caisson_webhook_attempts_at ON caisson_webhook_attempts (at, seq);
CREATE INDEX caisson_webhook_attempts_endpoint ON caisson_webhook_attempts (endpoint, at, seq);
CREATE INDEX caisson_webhook_attempts_failed ON caisson_webhook_attempts (endpoint, at, seq) WHERE status NOT BETWEEN 200 AND 299;
CREATE INDEX caisson_webhook_attempts_event ON caisson_webhook_attempts (event, endpoint, at, seq);

-- A line has a row while somebody waits in it. Its head is the one place whose job was enqueued.
CREATE TABLE caisson_webhook_lines (
	endpoint    TEXT    PRIMARY KEY,
	head        INTEGER NOT NULL, -- seq of the place
	since       INTEGER NOT NULL, -- when it became the head
	enqueued_at INTEGER NOT NULL, -- when its job was enqueued last
	times       INTEGER NOT NULL  -- how often it was
) WITHOUT ROWID;
CREATE TABLE caisson_webhook_places (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- numbers are not used again: a line's order is theirs
	endpoint TEXT    NOT NULL,
	tenant   TEXT    NOT NULL,
	event    TEXT    NOT NULL,
	UNIQUE (endpoint, event, tenant)
);
CREATE INDEX caisson_webhook_places_line ON caisson_webhook_places (endpoint, seq);
`}

const (
	insertEvent = `INSERT INTO caisson_webhook_events (tenant, id, type, content_type, at, body) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, id) DO NOTHING`
	eventColumns = `seq, tenant, id, type, content_type, at, body`
	selectEvent  = `SELECT ` + eventColumns + ` FROM caisson_webhook_events WHERE tenant = ? AND id = ?`
	listEvents   = `SELECT seq, tenant, id, type, content_type, at, CASE WHEN ?9 THEN NULL ELSE body END FROM caisson_webhook_events
WHERE tenant = ?1 AND at >= ?2 AND at < ?3 AND (at, seq) > (?4, ?5) AND (substr(type, 1, length(?7)) = ?7 AND (NOT ?8 OR type = ?7)) ORDER BY at, seq LIMIT ?6+0`
	expireEvents = `DELETE FROM caisson_webhook_events WHERE seq IN
	(SELECT seq FROM caisson_webhook_events WHERE at < ? ORDER BY at LIMIT ?+0)`

	attemptColumns = `seq, at, tenant, endpoint, event, job, number, status, phase, duration, excerpt, error, request_id, resent, cut_off`
	insertAttempt  = `INSERT INTO caisson_webhook_attempts (at, tenant, endpoint, event, job, number, status, phase, duration, excerpt, error,
	request_id, resent, cut_off) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	expireAttempts = `DELETE FROM caisson_webhook_attempts WHERE seq IN
	(SELECT seq FROM caisson_webhook_attempts WHERE at < ? ORDER BY at LIMIT ?+0)`
	selectTried = `SELECT EXISTS (SELECT 1 FROM caisson_webhook_attempts WHERE event = ? AND endpoint = ? AND tenant = ?)`

	insertPlace  = `INSERT INTO caisson_webhook_places (endpoint, tenant, event) VALUES (?, ?, ?) ON CONFLICT (endpoint, event, tenant) DO NOTHING`
	deletePlace  = `DELETE FROM caisson_webhook_places WHERE endpoint = ? AND event = ? AND tenant = ? RETURNING seq`
	deletePlaces = `DELETE FROM caisson_webhook_places WHERE endpoint = ? AND tenant = ?`
	firstPlace   = `SELECT seq, tenant, event FROM caisson_webhook_places WHERE endpoint = ? ORDER BY seq LIMIT 1`
	countPlaces  = `SELECT count(*) FROM caisson_webhook_places WHERE endpoint = ?`
	placeOf      = `SELECT seq FROM caisson_webhook_places WHERE endpoint = ? AND event = ? AND tenant = ?`
	countAhead   = `SELECT count(*) FROM caisson_webhook_places WHERE endpoint = ? AND seq < ?`
	selectHead   = `SELECT l.head, p.tenant, p.event, l.since FROM caisson_webhook_lines l JOIN caisson_webhook_places p ON p.seq = l.head
WHERE l.endpoint = ?`
	insertLine = `INSERT INTO caisson_webhook_lines (endpoint, head, since, enqueued_at, times) VALUES (?1, ?2, ?3, ?3, 1)
ON CONFLICT (endpoint) DO UPDATE SET head = excluded.head, since = excluded.since, enqueued_at = excluded.enqueued_at, times = 1`
	deleteLine  = `DELETE FROM caisson_webhook_lines WHERE endpoint = ?`
	selectStale = `SELECT l.endpoint, p.tenant, p.event, l.since FROM caisson_webhook_lines l JOIN caisson_webhook_places p ON p.seq = l.head
WHERE l.enqueued_at <= ?1 - min(?2 << min(l.times - 1, 20), ?3) ORDER BY l.enqueued_at LIMIT ?4+0`
	touchLine = `UPDATE caisson_webhook_lines SET enqueued_at = ?, times = times + 1 WHERE endpoint = ?`
)
