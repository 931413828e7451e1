package embedded

// schemaName is how the file's table of versions knows this package.
const schemaName = "queue"

// schema only ever grows at its end: see sqlitefile.Migrate.
//
// One column decides everything about a message's visibility: it can be received when due <= now. A delay and a lease both move
// due into the future; leased tells them apart for counting and for fencing. Times are unix milliseconds. ids are never used
// again (AUTOINCREMENT), so that (id, deliveries) names one delivery for ever. The large columns come last, so that the others
// are read without them.
var schema = []string{`
CREATE TABLE queues (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
);
CREATE TABLE messages (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	queue      INTEGER NOT NULL,
	due        INTEGER NOT NULL,
	leased     INTEGER NOT NULL,
	deliveries INTEGER NOT NULL,
	attempts   INTEGER NOT NULL,
	enqueued   INTEGER NOT NULL,
	headers    BLOB NOT NULL,
	body       BLOB NOT NULL
);
CREATE INDEX messages_due ON messages (queue, due, leased);
`}

const (
	sqlFindQueue   = `SELECT id FROM queues WHERE name = ?`
	sqlCreateQueue = `INSERT INTO queues (name) VALUES (?) ON CONFLICT (name) DO NOTHING`
	sqlListQueues  = `SELECT name FROM queues ORDER BY name`

	sqlPublish = `INSERT INTO messages (queue, due, leased, deliveries, attempts, enqueued, headers, body)
		VALUES (?, ?, 0, 0, 0, ?, ?, ?)`

	// The two halves of a receive run in one write transaction, so that nothing comes between them. A bare LIMIT ? would make
	// SQLite plan the statement again for each new value.
	sqlPeek = `SELECT id, deliveries, attempts, enqueued, headers, body FROM messages
		WHERE queue = ? AND due <= ? ORDER BY due, leased, id LIMIT ?+0`
	sqlLease = `UPDATE messages SET due = ?, leased = 1, deliveries = deliveries + 1, attempts = attempts + 1
		WHERE id = ?`
	sqlNextDue = `SELECT due FROM messages WHERE queue = ? ORDER BY due LIMIT 1`

	// Every change to a leased message names the delivery, and that its lease is still live.
	whereHeld = ` WHERE id = ? AND deliveries = ? AND leased = 1 AND due > ?`
	sqlAck    = `DELETE FROM messages` + whereHeld
	sqlReturn = `UPDATE messages SET due = ?, leased = 0, attempts = max(0, attempts - ?)` + whereHeld
	sqlExtend = `UPDATE messages SET due = ?` + whereHeld

	sqlCountReady   = `SELECT count(*) FROM messages WHERE queue = ? AND due <= ?`
	sqlCountWaiting = `SELECT count(*), coalesce(sum(leased), 0) FROM messages WHERE queue = ? AND due > ?`
)
