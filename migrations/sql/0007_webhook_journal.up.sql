-- Published webhook events, the calls that delivered them, and the lines of endpoints that ask for order. Events and attempts live in
-- generations of their own, which are dropped whole.
--
-- Names that users or receivers choose are bytea: they may hold any bytes.
CREATE SEQUENCE webhook_events_seq;
CREATE TABLE webhook_events (
	gen          int         NOT NULL,
	seq          bigint      NOT NULL,
	tenant       bytea       NOT NULL,
	id           bytea       NOT NULL,
	type         bytea       NOT NULL,
	content_type bytea       NOT NULL,
	at           timestamptz NOT NULL,
	body         bytea       NOT NULL
) PARTITION BY LIST (gen);
CREATE TABLE webhook_events_1 PARTITION OF webhook_events (PRIMARY KEY (tenant, id)) FOR VALUES IN (1);
CREATE INDEX webhook_events_1_list ON webhook_events_1 (tenant, at, seq);
INSERT INTO generations (family, gen) VALUES ('webhook_events', 1);

CREATE SEQUENCE webhook_attempts_seq CACHE 50;
CREATE TABLE webhook_attempts (
	gen        int         NOT NULL,
	seq        bigint      NOT NULL,
	at         timestamptz NOT NULL,
	tenant     bytea       NOT NULL,
	endpoint   bytea       NOT NULL,
	event      bytea       NOT NULL,
	job        bytea       NOT NULL,
	number     int         NOT NULL,
	status     int         NOT NULL,
	phase      text        NOT NULL,
	duration   bigint      NOT NULL, -- nanoseconds
	excerpt    text        NOT NULL,
	error      text        NOT NULL,
	request_id text        NOT NULL,
	resent     bool        NOT NULL,
	cut_off    bool        NOT NULL
) PARTITION BY LIST (gen);
CREATE TABLE webhook_attempts_1 PARTITION OF webhook_attempts FOR VALUES IN (1);
CREATE INDEX webhook_attempts_1_at ON webhook_attempts_1 (at, seq);
CREATE INDEX webhook_attempts_1_endpoint ON webhook_attempts_1 (endpoint, at, seq);
CREATE INDEX webhook_attempts_1_failed ON webhook_attempts_1 (endpoint, at, seq) WHERE status NOT BETWEEN 200 AND 299;
CREATE INDEX webhook_attempts_1_event ON webhook_attempts_1 (event, endpoint, at, seq);
INSERT INTO generations (family, gen) VALUES ('webhook_attempts', 1);

-- A line holds the deliveries of one endpoint that wait for those before them. Its row is what writers lock; there is none for an empty line.
-- The head is the one place whose job was enqueued.
CREATE TABLE webhook_lines (
	endpoint    bytea       PRIMARY KEY,
	head        bigint, -- seq of the place
	since       timestamptz, -- when it became the head
	enqueued_at timestamptz, -- when its job was enqueued last
	times       int         NOT NULL DEFAULT 0 -- how often it was
) WITH (fillfactor = 50);
CREATE SEQUENCE webhook_places_seq;
CREATE TABLE webhook_places (
	endpoint bytea  NOT NULL,
	seq      bigint NOT NULL,
	tenant   bytea  NOT NULL,
	event    bytea  NOT NULL,
	PRIMARY KEY (endpoint, seq),
	UNIQUE (endpoint, event, tenant)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
