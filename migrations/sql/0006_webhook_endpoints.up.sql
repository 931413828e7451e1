-- Webhook endpoints. What may be secret of one is sealed before it comes here. Names are bytea: they may hold any bytes.
CREATE TABLE webhook_endpoints (
	id         bytea       PRIMARY KEY,
	tenant     bytea       NOT NULL,
	state      text        NOT NULL,
	reason     bytea       NOT NULL,
	since      timestamptz,
	settings   bytea       NOT NULL, -- JSON
	sealed     bytea       NOT NULL,
	key        bytea       NOT NULL, -- the name of the key that sealed it
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	revision   bigint      NOT NULL UNIQUE,
	deleted    boolean     NOT NULL
);
CREATE INDEX webhook_endpoints_tenant ON webhook_endpoints (tenant, id) WHERE NOT deleted;
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (updated_at) WHERE deleted;

-- The last revision. Each transaction that changes an endpoint takes the next one here first, and so waits for the one before it to end: revisions are
-- in the order of commits, and whoever has seen one has seen all before it. A sequence would not do.
CREATE TABLE webhook_endpoint_revision (
	one      boolean PRIMARY KEY DEFAULT true CHECK (one),
	revision bigint  NOT NULL
) WITH (fillfactor = 10);
INSERT INTO webhook_endpoint_revision (revision) VALUES (0);

-- Which endpoint has which secret, by a keyed fingerprint.
CREATE TABLE webhook_endpoint_secrets (
	fingerprint bytea PRIMARY KEY,
	endpoint    bytea NOT NULL
);
CREATE INDEX webhook_endpoint_secrets_endpoint ON webhook_endpoint_secrets (endpoint);

-- What all workers together saw of an endpoint. No index holds what changes, and pages keep room free, so that a report changes rows in place (HOT).
CREATE TABLE webhook_endpoint_health (
	endpoint      bytea  PRIMARY KEY,
	failures      bigint NOT NULL,
	failing_since timestamptz,
	last_success  timestamptz,
	last_failure  timestamptz,
	recovered_at  timestamptz
) WITH (fillfactor = 50);
