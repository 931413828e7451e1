package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

const (
	eventsTable   = "webhook_events"
	attemptsTable = "webhook_attempts"

	// Compiling a plan over many partitions takes longer than running it.
	beginRead = `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL jit = off`
	// A partition that the server has not looked at yet seems small: all that is left would be sorted for each page instead of walking the
	// index in order.
	beginPage  = beginRead + `; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off`
	beginWrite = pgdb.BeginWrite + `; SET LOCAL jit = off`

	// What is searched for in all generations and inserted into the newest: see [pgdb.Generations].
	insertEvent = `WITH fresh AS (
	INSERT INTO {events} (gen, seq, tenant, id, type, content_type, at, body)
	SELECT {newest events}, {next event}, $1::bytea, $2::bytea, $3::bytea, $4::bytea, clock_timestamp(), $5::bytea
	WHERE NOT EXISTS (SELECT FROM {events} WHERE tenant = $1::bytea AND id = $2::bytea)
	ON CONFLICT DO NOTHING RETURNING 1
)
SELECT count(*) > 0 FROM fresh`
	sameEvent = `SELECT type = $3::bytea AND content_type = $4::bytea AND body = $5::bytea FROM {events} WHERE tenant = $1::bytea AND id = $2::bytea`

	eventColumns = `seq, tenant, id, type, content_type, at, body`
	selectEvent  = `SELECT ` + eventColumns + ` FROM {events} WHERE tenant = $1::bytea AND id = $2::bytea`
	selectEvents = `SELECT ` + eventColumns + ` FROM {events} WHERE tenant = $1::bytea`
	selectHeads  = `SELECT seq, tenant, id, type, content_type, at, NULL::bytea FROM {events} WHERE tenant = $1::bytea`

	insertAttempts = `INSERT INTO {attempts} (gen, seq, at, tenant, endpoint, event, job, number, status, phase, duration, excerpt, error,
	request_id, resent, cut_off)
SELECT {newest attempts}, {next attempt}, a.* FROM unnest($1::timestamptz[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::int[], $7::int[],
	$8::text[], $9::bigint[], $10::text[], $11::text[], $12::text[], $13::bool[], $14::bool[]) a`

	attemptColumns = `a.seq, a.at, a.tenant, a.endpoint, a.event, a.job, a.number, a.status, a.phase, a.duration, a.excerpt, a.error, a.request_id,
	a.resent, a.cut_off`
	// The limit keeps each event's look-up apart, whatever the planner knows of the tables.
	selectTried = `SELECT q.id FROM unnest($2::bytea[]) AS q (id),
	LATERAL (SELECT 1 FROM {attempts} a WHERE a.event = q.id AND a.endpoint = $1::bytea AND a.tenant = $3::bytea LIMIT 1) tried`
)

// statements are the texts with the names of the schema's tables.
type statements struct {
	names                                      *strings.Replacer
	writeEvent, insertEvent, sameEvent         string
	selectEvent, selectEvents, selectHeads     string
	writeAttempts, insertAttempts, selectTried string
}

// in fills in the names of tables.
func (s *statements) in(text string) string { return s.names.Replace(text) }

func newStatements(schema string) statements {
	table := func(name string) string { return pgx.Identifier{schema, name}.Sanitize() }
	next := func(sequence string) string {
		return "nextval('" + strings.ReplaceAll(table(sequence), "'", "''") + "')"
	}
	events := pgdb.Generations{Schema: schema, Family: eventsTable}
	attempts := pgdb.Generations{Schema: schema, Family: attemptsTable}
	s := statements{names: strings.NewReplacer(
		"{events}", table(eventsTable), "{attempts}", table(attemptsTable), "{lines}", table("webhook_lines"), "{places}", table("webhook_places"),
		"{newest events}", events.Newest(), "{newest attempts}", attempts.Newest(),
		"{next event}", next("webhook_events_seq"), "{next attempt}", next("webhook_attempts_seq"), "{next place}", next("webhook_places_seq"),
	)}
	s.writeEvent, s.writeAttempts = beginWrite+"; "+events.Lock(), beginWrite+"; "+attempts.Lock()
	s.insertEvent, s.sameEvent = s.in(insertEvent), s.in(sameEvent)
	s.selectEvent, s.selectEvents, s.selectHeads = s.in(selectEvent), s.in(selectEvents), s.in(selectHeads)
	s.insertAttempts, s.selectTried = s.in(insertAttempts), s.in(selectTried)
	return s
}

// where is a condition in the making.
type where struct {
	conditions []string
	args       []any
}

// add adds a condition, whose ? stands for an argument with its type, for example "at >= ?::timestamptz".
func (w *where) add(condition string, args ...any) {
	for _, arg := range args {
		w.args = append(w.args, arg)
		condition = strings.Replace(condition, "?", "$"+itoa(len(w.args)), 1)
	}
	w.conditions = append(w.conditions, condition)
}

// sql is the condition, with the word that stands before it.
func (w *where) sql(word string) string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " " + word + " " + strings.Join(w.conditions, " AND ")
}
