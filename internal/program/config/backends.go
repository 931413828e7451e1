package config

// The brokers, as Config.Broker names them.
const (
	BrokerEmbedded = "embedded"
	BrokerRabbitMQ = "rabbitmq"
	BrokerSQS      = "sqs"
)

// The places of claims, as [Config.ClaimStore] names them.
const (
	// StoreNone keeps no claims: every kind is unkeyed.
	StoreNone = "none"
	// StoreEmbedded is the file of the embedded queue.
	StoreEmbedded = "embedded"
	// StoreSQLite is a file of its own.
	StoreSQLite = "sqlite"

	// StorePostgres is a PostgreSQL.
	StorePostgres = "postgres"

	storeAuto = "auto"
)

// The places of dead letters, as [Config.DLQBackend] names them.
const (
	// DLQStore is the store, or the file of the embedded queue.
	DLQStore = "store"
	// DLQBroker is the dead-letter queue of each queue.
	DLQBroker = "broker"

	dlqAuto = "auto"
)

// Networked reports whether workers on several hosts can share the broker.
func (c *Config) Networked() bool { return c.Broker != BrokerEmbedded }

// ClaimStore is where claims are kept: [StoreEmbedded], [StoreSQLite], [StorePostgres] or [StoreNone].
func (c *Config) ClaimStore() string {
	switch {
	case c.Store != storeAuto && c.Store != "":
		return c.Store
	case !c.Postgres.URL.IsZero():
		return StorePostgres
	case c.Networked():
		return StoreNone
	}
	return StoreEmbedded
}

// DLQBackend is where dead letters live: [DLQStore] or [DLQBroker].
func (c *Config) DLQBackend() string {
	switch {
	case c.DLQ.Backend != dlqAuto && c.DLQ.Backend != "":
		return c.DLQ.Backend
	case c.Networked() && c.ClaimStore() == StoreNone:
		return DLQBroker
	}
	return DLQStore
}

// broker checks the section of the broker that is used; others may wait for their day.
func (v *validator) broker() {
	switch v.c.Broker {
	case BrokerEmbedded:
		if v.c.Embedded.Path == "" {
			v.problem("embedded.path", "is empty: name a file, for example ./caisson.db")
		}
	case BrokerRabbitMQ:
		v.rabbitmq()
	case BrokerSQS:
		v.sqs()
	}
}

// store checks where claims live. Claims must be shared by the whole fleet: each worker with a file of its own would run every key once.
func (v *validator) store() {
	if v.c.ClaimStore() == StorePostgres {
		v.postgres()
	} else if _, set := v.set("postgres.url"); set {
		v.warn("postgres.url", "is not used, since store is %s: set store to auto or postgres", v.c.Store)
	}
	if v.c.Store == StoreSQLite {
		switch {
		case !v.c.Networked():
			v.problem("store", "the embedded queue keeps claims in its own file, where they share its commits: use auto")
		case v.c.SQLite.Path == "":
			v.problem("sqlite.path", "is empty: name a file, for example ./caisson.db")
		case !v.c.SQLite.SingleHost:
			v.problem("sqlite.single_host", "store sqlite is a file on this host, and claims must be shared by every worker of the queues, or a key runs once on each host: use postgres (postgres.url), set sqlite.single_host to true if all workers run here, or set store to none")
		}
	}
}

// deadLetters checks where dead letters live.
func (v *validator) deadLetters() {
	switch b := v.c.DLQ.Backend; {
	case b == DLQBroker && !v.c.Networked():
		v.problem("dlq.backend", "the embedded queue keeps dead letters in its file: use store or auto")
	case b == DLQStore && v.c.Networked() && v.c.ClaimStore() == StoreNone:
		v.problem("dlq.backend", "there is no store to keep dead letters in: use broker or auto, or set store")
	}
	if v.c.DLQ.Mirror == DLQBroker && !v.c.Networked() {
		v.problem("dlq.mirror", "broker needs a broker with dead-letter queues, and the embedded one has none: set it to none")
	}
	if v.c.DLQ.Mirror == DLQBroker && v.c.DLQBackend() == DLQBroker {
		v.problem("dlq.mirror", "broker copies dead letters from a store, and here they live in the broker alone: set it to none, or set postgres.url")
	}
	if v.c.DLQBackend() != DLQBroker {
		return
	}
	for _, key := range []string{"hold.after", "hold.backlog", "dlq.retention", "dlq.sweep"} {
		if _, set := v.set(key); set {
			v.warn(key, "has no effect: dead letters live in the broker (dlq.backend), which keeps them until somebody takes them and cannot hold jobs")
		}
	}
}

// set returns the setting of key, and whether anybody gave it.
func (v *validator) set(key string) (Setting, bool) {
	for _, s := range v.c.settings {
		if s.Key == key {
			return s, s.Origin != Default && s.Origin != Inherited
		}
	}
	return Setting{}, false
}

// kindStore checks what a kind asks of the store.
func (v *validator) kindStore(key string, k Kind) {
	if k.Idempotency == "key" && v.c.ClaimStore() == StoreNone {
		v.problem(key+".idempotency", "key needs a store for claims, and there is none: %s", v.wayToStore())
	}
}

// wayToStore says how to get a store.
func (v *validator) wayToStore() string {
	if !v.c.Networked() {
		return "set store to auto"
	}
	return "set postgres.url, or set store to sqlite and sqlite.single_host to true where all workers run on one host"
}
