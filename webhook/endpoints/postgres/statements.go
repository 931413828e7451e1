package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	nextRevision = `UPDATE {revision} SET revision = revision + 1 RETURNING revision, clock_timestamp()`

	columns = `id, tenant, state, reason, since, settings, sealed, key, created_at, updated_at, revision, deleted`

	insertRecord = `INSERT INTO {endpoints} AS e (` + columns + `)
VALUES ($1::bytea, $2::bytea, $3::text, $4::bytea, $5::timestamptz, $6::bytea, $7::bytea, $8::bytea, $9::timestamptz, $9::timestamptz, $10::bigint, false)
ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, state = excluded.state, reason = excluded.reason, since = excluded.since,
	settings = excluded.settings, sealed = excluded.sealed, key = excluded.key, created_at = excluded.created_at,
	updated_at = excluded.updated_at, revision = excluded.revision, deleted = false
WHERE e.deleted RETURNING ` + columns
	updateRecord = `UPDATE {endpoints} SET tenant = $2::bytea, state = $3::text, reason = $4::bytea, since = $5::timestamptz, settings = $6::bytea,
	sealed = $7::bytea, key = $8::bytea, updated_at = $9::timestamptz, revision = $10::bigint
WHERE id = $1::bytea AND revision = $11::bigint AND NOT deleted RETURNING ` + columns
	buryRecord = `UPDATE {endpoints} SET state = '', reason = '', since = NULL, settings = '', sealed = '', key = '', updated_at = $2::timestamptz,
	revision = $3::bigint, deleted = true
WHERE id = $1::bytea AND revision = $4::bigint AND NOT deleted`
	purgeRecords = `WITH gone AS (DELETE FROM {endpoints} WHERE deleted AND updated_at < $1::timestamptz - $2::bigint * interval '1 microsecond' RETURNING id)
DELETE FROM {health} WHERE endpoint IN (SELECT id FROM gone)`

	selectRecord  = `SELECT ` + columns + ` FROM {endpoints} WHERE id = $1::bytea AND NOT deleted`
	selectRecords = `SELECT ` + columns + ` FROM {endpoints} WHERE NOT deleted AND id > $1::bytea`
	selectChanges = `SELECT ` + columns + ` FROM {endpoints} WHERE revision > $1::bigint ORDER BY revision LIMIT $2::bigint`

	freeSecrets = `DELETE FROM {secrets} WHERE endpoint = $1::bytea AND fingerprint <> ALL ($2::bytea[])`
	takeSecrets = `INSERT INTO {secrets} (fingerprint, endpoint) SELECT DISTINCT unnest($2::bytea[]), $1::bytea ON CONFLICT (fingerprint) DO NOTHING`
	lostSecrets = `SELECT count(*) FROM {secrets} WHERE fingerprint = ANY ($2::bytea[]) AND endpoint <> $1::bytea`

	healthColumns = `endpoint, failures, failing_since, last_success, last_failure, recovered_at`
	selectHealth  = `SELECT ` + healthColumns + ` FROM {health} WHERE endpoint = $1::bytea`
	selectFailing = `SELECT ` + healthColumns + ` FROM {health} WHERE endpoint = ANY ($1::bytea[]) AND failures > 0`
	dropHealth    = `DELETE FROM {health} WHERE endpoint = $1::bytea`
	recovered     = `INSERT INTO {health} AS h (endpoint, failures, recovered_at)
SELECT id, 0, clock_timestamp() FROM {endpoints} WHERE id = $1::bytea AND NOT deleted
ON CONFLICT (endpoint) DO UPDATE SET failures = 0, failing_since = NULL, recovered_at = GREATEST(h.recovered_at, excluded.recovered_at)`

	// report does what [endpoints.Health.Add] does. Its arguments are runs of failures that their own success has cut already. A failure
	// that a success ended is the last one all the same.
	report = `INSERT INTO {health} AS h (endpoint, failures, failing_since, last_success, last_failure)
SELECT d.* FROM unnest($1::bytea[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[]) AS d (endpoint, failures, first, success, last)
WHERE EXISTS (SELECT FROM {endpoints} e WHERE e.id = d.endpoint AND NOT e.deleted)
ORDER BY d.endpoint
ON CONFLICT (endpoint) DO UPDATE SET
	(failures, failing_since) = (
		SELECT coalesce(sum(CASE WHEN r.first > c.ended THEN r.failures ELSE 1 END), 0), min(CASE WHEN r.first > c.ended THEN r.first ELSE r.last END)
		FROM (SELECT coalesce(GREATEST(h.last_success, excluded.last_success, h.recovered_at), '-infinity') AS ended) c,
			(VALUES (h.failures, h.failing_since, h.last_failure), (excluded.failures, excluded.failing_since, excluded.last_failure)) r (failures, first, last)
		WHERE r.failures > 0 AND r.last > c.ended),
	last_success = GREATEST(h.last_success, excluded.last_success),
	last_failure = GREATEST(h.last_failure, excluded.last_failure)
RETURNING ` + healthColumns
)

// statements are the texts above with the names of a schema's tables.
type statements struct {
	next, insert, update, bury, purge     string
	get, list, changes                    string
	freeSecrets, takeSecrets, lostSecrets string
	health, failing, dropHealth           string
	recovered, report                     string
}

func newStatements(schema string) statements {
	table := func(name string) string { return pgx.Identifier{schema, "webhook_endpoint" + name}.Sanitize() }
	in := strings.NewReplacer("{endpoints}", table("s"), "{revision}", table("_revision"), "{secrets}", table("_secrets"), "{health}", table("_health")).Replace
	return statements{
		next: in(nextRevision), insert: in(insertRecord), update: in(updateRecord), bury: in(buryRecord), purge: in(purgeRecords),
		get: in(selectRecord), list: in(selectRecords), changes: in(selectChanges),
		freeSecrets: in(freeSecrets), takeSecrets: in(takeSecrets), lostSecrets: in(lostSecrets),
		health: in(selectHealth), failing: in(selectFailing), dropHealth: in(dropHealth), recovered: in(recovered), report: in(report),
	}
}
