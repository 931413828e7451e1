package config

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Where claims and dead letters live, for each broker and what was asked for.
func TestBackends(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, store, dlq string }{
		{"", StoreEmbedded, DLQStore},
		{"store: none", StoreNone, DLQStore},
		{"dlq: {backend: store}", StoreEmbedded, DLQStore},
		{"broker: rabbitmq", StoreNone, DLQBroker},
		{"broker: sqs\nstore: none\ndlq: {backend: broker}", StoreNone, DLQBroker},
		{"broker: sqs\nstore: sqlite\nsqlite: {single_host: true}", StoreSQLite, DLQStore},
		{"broker: rabbitmq\nstore: sqlite\nsqlite: {single_host: true}\ndlq: {backend: broker}", StoreSQLite, DLQBroker},
		{"postgres: {url: postgres://h/d}", StorePostgres, DLQStore},
		{"broker: sqs\npostgres: {url: 'host=h password=p'}\ndlq: {mirror: broker}", StorePostgres, DLQStore},
		{"broker: rabbitmq\nstore: postgres\npostgres: {url: 'postgresql://a,b:1/d'}\ndlq: {backend: broker}\noutbox: {relay: true}", StorePostgres, DLQBroker},
	} {
		c := mustLoad(t, tt.file, nil, nil)
		if c.ClaimStore() != tt.store || c.DLQBackend() != tt.dlq {
			t.Errorf("%q: claims in %s, dead letters in %s; want %s, %s", tt.file, c.ClaimStore(), c.DLQBackend(), tt.store, tt.dlq)
		}
	}
}

func TestBackendsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, want string }{
		{"store: postgres", "postgres.url: is missing: name the database"},
		{"postgres: {url: localhost}", "postgres.url: is no URL: write postgres://"},
		{"postgres: {url: 'mysql://h/d'}", "postgres.url: has another scheme than postgres"},
		{"postgres: {url: 'postgres:///d'}", "postgres.url: cannot be read"},
		{"postgres: {url: 'postgres://h/d', direct_url: 'postgres://h:x/d'}", "postgres.direct_url: cannot be read"},
		{"postgres: {url: 'postgres://h/d', schema: 'Odd-name'}", `postgres.schema: "Odd-name" is no name for a schema here`},
		{"postgres: {url: 'postgres://h/d', schema: ''}", `postgres.schema: "" is no name`},
		{"postgres: {url: 'postgres://h/d', schema: pg_mine}", `postgres.schema: "pg_mine" belongs to PostgreSQL itself`},
		{"postgres: {url: 'postgres://h/d', max_conns: 8, transactions: 7}", "postgres.transactions: 7 leaves less than two of the 8 connections"},
		{"postgres: {url: 'postgres://h/d', max_conns: 1}", "postgres.max_conns: 1 is too little: the least is 4"},
		{"outbox: {relay: true}", "outbox.relay: the outbox is a table of the store postgres, and the store is embedded"},
		{"dlq: {mirror: broker}", "dlq.mirror: broker needs a broker with dead-letter queues"},
		{"broker: sqs\ndlq: {mirror: broker}", "dlq.mirror: broker copies dead letters from a store"},
		{"store: sqlite", "store: the embedded queue keeps claims in its own file"},
		{"broker: sqs\nstore: sqlite", "sqlite.single_host: store sqlite is a file on this host, and claims must be shared by every worker"},
		{"broker: rabbitmq\nstore: sqlite\nsqlite: {single_host: true, path: ''}", "sqlite.path: is empty"},
		{"broker: rabbitmq\ndlq: {backend: store}", "dlq.backend: there is no store to keep dead letters in"},
		{"dlq: {backend: broker}", "dlq.backend: the embedded queue keeps dead letters in its file"},
		{"broker: rabbitmq\nkinds: {a: {idempotency: key}}", "kinds.a.idempotency: key needs a store for claims, and there is none: set postgres.url, or set store to sqlite"},
		{"store: none\nkinds: {a: {idempotency: key}}", "there is none: set store to auto"},
		{"broker: sqs\nqueues: [a.fifo]", "a.fifo: a FIFO queue needs a store"},
		{"broker: sqs\nqueues: [a.b]", `"a.b" is no queue name for SQS`},
		{"broker: sqs\nqueues: [" + strings.Repeat("a", 77) + "]", "it has 81 characters, and 80 are allowed"},
		{"broker: sqs\nsqs: {prefix: prod-}\nqueues: [" + strings.Repeat("a", 72) + "]", "it has 81 characters"},
		{"broker: sqs\nsqs: {prefix: p.}", "sqs.prefix: \"p.\" is no prefix"},
		{"broker: sqs\nsqs: {account_id: '12'}", "sqs.account_id: \"12\" is no account"},
		{"broker: sqs\nsqs: {endpoint: 'localhost:4566'}", "sqs.endpoint: is no http or https URL"},
		{"broker: sqs\nsqs: {endpoint: 'http://k:s@h'}", "sqs.endpoint: carries a user name"},
		{"broker: sqs\nsqs: {endpoint: 'http://h/?token=s'}", "sqs.endpoint: carries more than a host and a path"},
		{"broker: sqs\nsqs: {region: us east}", "sqs.region: \"us east\" is no region"},
		{"broker: sqs\nqueues: [jobs-dlq]", `those of dead-letter queues in SQS, which are written "jobs.dlq"`},
		{"broker: sqs\nstore: sqlite\nsqlite: {single_host: true}\nqueues: [jobs-dlq.fifo]", `which are written "jobs.fifo.dlq"`},
		{"broker: sqs\nqueues: [jobs.dlq]", "jobs.dlq: is a dead-letter queue, and what dies in it has nowhere to go"},
		{"broker: rabbitmq\nqueues: [jobs.dlq]", "jobs.dlq: is a dead-letter queue"},
		{"broker: rabbitmq\nrabbitmq: {urls: []}", "rabbitmq.urls: is empty"},
		{"broker: rabbitmq\nrabbitmq: {urls: ['http://h']}", `rabbitmq.urls: item 1 (http://h/***) has the scheme "http"`},
		{"broker: rabbitmq\nrabbitmq: {urls: [amqps://h, 'amqp://']}", "rabbitmq.urls: item 2 is no URL with a host"},
		{"broker: rabbitmq\nrabbitmq: {tls: {ca_file: ca.pem}}", "rabbitmq.tls: is set, but no URL"},
		{"broker: rabbitmq\nrabbitmq: {urls: [amqps://h], tls: {cert_file: c.pem}}", "cert_file and key_file go together"},
		{"broker: rabbitmq\nrabbitmq: {consumer_timeout: 59s}", "rabbitmq.consumer_timeout: 59s is too little: use at least 1m"},
		{"broker: sqs\nqueues: [a-dlq]", `"a-dlq" is no queue name here: names that end in -dlq are those of dead-letter queues in SQS, which are written "a.dlq"`},
		{"broker: rabbitmq\nrabbitmq: {prefix: ''}", "rabbitmq.prefix: \"\" is no prefix"},
		{"broker: rabbitmq\nrabbitmq: {management: 'h:15672'}", "rabbitmq.management: is no http or https URL"},
		{"queues: [{name: a, priority: 3}]", "a has priority 3: it must lie between 0"},
		{"queues: [{name: a, priority: high}]", `priority: "high" is not a whole number`},
		{"queues: [{name: a, on_dead: block}]", "a: on_dead belongs to FIFO queues"},
		{"broker: rabbitmq\nqueues: [{name: a.fifo, on_dead: block}]", "a.fifo: on_dead belongs to FIFO queues"},
		{"broker: sqs\nqueues: [{name: a.fifo, on_dead: stop}]", `a.fifo: on_dead "stop" is neither continue nor block`},
		{"broker: sqs\nstore: sqlite\nsqlite: {single_host: true}\ndlq: {backend: broker}\nqueues: [{name: a.fifo, on_dead: block}]", "on_dead block needs dead letters in a store"},
		{"queues: [{name: a, unwrap_sns: true}]", "a: unwrap_sns needs the broker sqs"},
		{"queues: [{name: a, unwrap_sns: yes}]", `unwrap_sns: "yes" is neither true nor false`},
	} {
		_, _, err := load("f.yaml", []byte(tt.file), nil, nil)
		var list *Error
		if !errors.As(err, &list) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\ngot  %v\nwant %s", tt.file, err, tt.want)
		}
	}
}

// Passwords of a broker's URLs are shown neither where the configuration is printed nor where it is refused.
func TestBrokerURLsAreSecrets(t *testing.T) {
	t.Parallel()
	env := []string{
		"CAISSON_BROKER=rabbitmq", "CAISSON_RABBITMQ_URLS=amqp://u:hunter2@a:5672/v,amqps://u:hunter2@b/v", "CAISSON_RABBITMQ_MANAGEMENT=http://u:hunter2@a:15672",
	}
	c := mustLoad(t, "", env, nil)
	if len(c.RabbitMQ.URLs) != 2 || c.RabbitMQ.URLs[1].Reveal() != "amqps://u:hunter2@b/v" {
		t.Fatalf("%d URLs", len(c.RabbitMQ.URLs))
	}
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"rabbitmq: {urls: ['amqp://u:hunter2@h\x7f/']}", "rabbitmq: {urls: ['u:hunter2@h'], management: 'u:hunter2@h'}", "rabbitmq: {urls: [amqp://u:hunter2@:1]}"} {
		_, _, err := load("f", []byte("broker: rabbitmq\n"+file), nil, nil)
		if err == nil {
			t.Errorf("%s: accepted", file)
			continue
		}
		out.WriteString(err.Error())
	}
	if strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), `urls: ["amqp://a:5672/***", "amqps://b/***"]`) {
		t.Error(out.String())
	}
}

func TestHoldingNeedsAStore(t *testing.T) {
	t.Parallel()
	_, warnings, err := load("f", []byte("broker: sqs\nhold: {after: 1m}"), nil, nil)
	if err != nil || len(warnings) != 1 || warnings[0].Key != "hold.after" {
		t.Fatalf("%v, %v", warnings, err)
	}
	mustLoad(t, "broker: sqs\nstore: sqlite\nsqlite: {single_host: true}\nhold: {after: 1m}", nil, nil)
}

func TestQueueNames(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "broker: sqs\nsqs: {prefix: prod-}\nstore: sqlite\nsqlite: {single_host: true}\nqueues: [{name: a_b-1.fifo, on_dead: block}, {name: sns, unwrap_sns: true}]", nil, nil)
	if !c.FIFO("x.fifo") || !c.FIFO("x.fifo.dlq") || c.FIFO("fifo") || c.Queues[0].OnDead != OnDeadBlock || !c.Queues[1].UnwrapSNS {
		t.Errorf("%+v", c.Queues)
	}
	for name, ok := range map[string]bool{
		"a.dlq": false, "a.fifo.dlq": false, strings.Repeat("a", 71): true, strings.Repeat("a", 72): false, ".fifo": false, ".dlq": false,
		"a-dlq": false, "a-dlq.fifo": false, "a-dlq.dlq": false, "a-dlqs": true,
	} {
		if err := c.CheckQueueName(name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing of a database's URL is shown, whatever is wrong with it.
func TestDatabaseURLsAreSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := mustLoad(t, "", []string{"CAISSON_POSTGRES_URL=postgres://u:hunter2@h/d", "CAISSON_POSTGRES_DIRECT_URL=host=h password=hunter2"}, nil)
	if err := c.Print(&out); err != nil || !strings.Contains(out.String(), `url: "***"`) {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, url := range []string{
		"postgres://u:hunter2/x@h/d", "postgres://u:12?hunter2@h/d", "postgres://u:hunter2@h:port/d", "mysql://u:hunter2@h", "hunter2", "postgres://u:1#hunter2@h/d", "postgres://u:hunter2@/d",
	} {
		_, _, err := load("f", nil, []string{"CAISSON_POSTGRES_URL=" + url}, nil)
		if err == nil {
			t.Errorf("%s: accepted", url)
			continue
		}
		out.WriteString(err.Error())
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Error(out.String())
	}
}

func TestPostgresDefaultsAndWarnings(t *testing.T) {
	t.Parallel()
	const url = "postgres: {url: postgres://h/d, "
	for file, want := range map[string]string{
		url + "pooler: true}": "postgres.direct_url: is missing",
		url + "pooler: true, direct_url: h=1, statement_timeout: 10s}": "postgres.statement_timeout: has no effect",
		"store: none\n" + url + "}":                                    "postgres.url: is not used, since store is none",
		"broker: sqs\ndlq: {backend: broker, sweep: 1m}\n" + url + "}": "dlq.sweep: has no effect",
	} {
		_, warnings, err := load("f", []byte(file), nil, nil)
		if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0].String(), want) {
			t.Errorf("%q: %v, %v; want %s", file, warnings, err, want)
		}
	}
	for concurrency, conns := range map[string]int{"1": 5, "16": 20, "1000": 20} {
		if c := mustLoad(t, url+"}\nconcurrency: "+concurrency, nil, nil); c.Postgres.MaxConns != conns {
			t.Errorf("concurrency %s: %d connections, want %d", concurrency, c.Postgres.MaxConns, conns)
		}
	}
	if c := mustLoad(t, url+"max_conns: 64}", nil, nil); c.Postgres.MaxConns != 64 || c.Postgres.Channel() != "postgres://h/d" {
		t.Errorf("%d connections, channel %s", c.Postgres.MaxConns, c.Postgres.Channel())
	}
}
