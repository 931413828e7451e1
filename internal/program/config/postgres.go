package config

import (
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Postgres configures the store postgres.
type Postgres struct {
	URL              Secret        `key:"url" doc:"The database: postgres://user:password@host:5432/database, with %40 for an @ in a password and the like. Several hosts, host1:5432,host2:5432, are tried in turn; add target_session_attrs=read-write where one of them is a standby. Naming it makes postgres the store, unless store says otherwise."`
	DirectURL        Secret        `key:"direct_url" doc:"The same database without the pooler, for LISTEN, which a pooler in transaction mode cannot carry. Unset without a pooler: url. Unset with one: what LISTEN would tell at once is found by polling."`
	Schema           string        `key:"schema" doc:"Schema of all tables: 1 to 63 lower-case letters, digits and underscores, not a digit first. worker migrate up makes it. Programs that enqueue in transactions name it in outbox.Config.Schema."`
	Pooler           bool          `key:"pooler" default:"false" doc:"url leads to a pooler in transaction mode, for example PgBouncer: statements are not prepared."`
	MaxConns         int           `key:"max_conns" min:"4" max:"10000" doc:"The most connections of one worker to url. Unset: 4 and one for each slot, at most 20. A handler that takes part in a transaction has one of them to itself until it returns."`
	Transactions     int           `key:"transactions" min:"1" max:"10000" doc:"The most handlers of one worker that are in a transaction at once; others wait for their turn. At most max_conns less two: claims need connections, too. Unset: max_conns less four, or half of it if that is more."`
	ConnectTimeout   time.Duration `key:"connect_timeout" default:"5s" min:"100ms" max:"1m" doc:"How long making a connection may take."`
	StatementTimeout time.Duration `key:"statement_timeout" default:"30s" min:"1s" max:"10m" doc:"The server ends a statement after it. It has no effect through a pooler: set it there, or for the role."`
}

// Outbox configures the transactional outbox.
type Outbox struct {
	Relay bool `key:"relay" default:"false" doc:"This worker publishes what was enqueued in transactions (the table outbox of the store postgres). Any number of workers may. worker relay does it alone."`
}

// Channel returns the URL that LISTEN works on, "" if there is none: through a pooler in transaction mode it does not.
func (p Postgres) Channel() string {
	if !p.DirectURL.IsZero() || p.Pooler {
		return p.DirectURL.Reveal()
	}
	return p.URL.Reveal()
}

// schemaName leaves out what would have to be quoted everywhere an operator types it.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// postgres checks the section of the store postgres. URLs carry passwords: no part of them is in a problem.
func (v *validator) postgres() {
	c := &v.c.Postgres
	if c.MaxConns == 0 {
		c.MaxConns = min(v.c.Concurrency+4, 20)
		v.show("postgres.max_conns", show(c.MaxConns))
	}
	if c.Transactions > c.MaxConns-2 {
		v.problem("postgres.transactions", "%d leaves less than two of the %d connections for claims: set it lower, or postgres.max_conns higher", c.Transactions, c.MaxConns)
	}
	switch {
	case !schemaName.MatchString(c.Schema):
		v.problem("postgres.schema", "%q is no name for a schema here: use 1 to 63 lower-case letters, digits and underscores, not a digit first, for example caisson", c.Schema)
	case strings.HasPrefix(c.Schema, "pg_"), c.Schema == "information_schema":
		v.problem("postgres.schema", "%q belongs to PostgreSQL itself: use another name, for example caisson", c.Schema)
	}
	if c.URL.IsZero() {
		v.problem("postgres.url", "is missing: name the database, for example postgres://user:password@host:5432/database (or set store to another)")
		return
	}
	v.postgresURL("postgres.url", c.URL)
	if !c.DirectURL.IsZero() {
		v.postgresURL("postgres.direct_url", c.DirectURL)
	}
	if !c.Pooler {
		return
	}
	if c.DirectURL.IsZero() {
		v.warn("postgres.direct_url", "is missing, and a pooler cannot carry LISTEN: the outbox is polled, so that a job enqueued in a transaction may wait up to a second")
	}
	if _, set := v.set("postgres.statement_timeout"); set {
		v.warn("postgres.statement_timeout", "has no effect through a pooler: set it in the pooler, or with ALTER ROLE ... SET statement_timeout")
	}
}

// postgresURL refuses what would not be read as it was meant: what is special in a password and was not encoded.
func (v *validator) postgresURL(key string, s Secret) {
	const form = "write postgres://user:password@host:5432/database, and percent-encode what is special in a password (%%40 for @, %%2F for /, %%3F for ?, %%23 for #)"
	text := strings.TrimSpace(s.Reveal())
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		if !strings.Contains(text, "=") {
			v.problem(key, "is no URL: "+form)
		}
		return // a list of keyword=value, which the driver reads
	}
	end := strings.IndexAny(rest, "/?#")
	u, err := url.Parse(text)
	switch {
	case scheme != "postgres" && scheme != "postgresql":
		v.problem(key, "has another scheme than postgres: "+form)
	case err != nil, u.Host == "" && u.Query().Get("host") == "", end >= 0 && strings.Contains(rest[end:], "@"), u.Fragment != "":
		v.problem(key, "cannot be read: "+form)
	}
}

// outbox checks what the relay needs.
func (v *validator) outbox() {
	if v.c.Outbox.Relay && v.c.ClaimStore() != StorePostgres {
		v.problem("outbox.relay", "the outbox is a table of the store postgres, and the store is %s: set postgres.url, or outbox.relay to false", v.c.ClaimStore())
	}
}
