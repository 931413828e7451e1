-- Jobs that were enqueued in a transaction and wait for a relay to publish them.

CREATE SEQUENCE outbox_ids;

-- Fresh jobs. Two tables take turns: new rows go to the one, and the other is truncated once relays have emptied it, so that neither
-- vacuum nor a transaction that stays open for hours decides how large they become. Autovacuum is the net for a table that does not
-- get empty. The primary key serves all reads: a relay reads the shards that it has leased in the order of ids.
CREATE TABLE outbox (
    shard         smallint    NOT NULL,
    id            bigint      NOT NULL DEFAULT nextval('outbox_ids'),
    turn          smallint    NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at        timestamptz,
    queue         text        NOT NULL,
    order_key     bytea,
    message_group bytea,
    dedup_id      bytea       NOT NULL,
    headers       bytea,
    body          bytea,
    PRIMARY KEY (shard, id, turn)
) PARTITION BY LIST (turn);

CREATE TABLE outbox_0 PARTITION OF outbox FOR VALUES IN (0) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES IN (1) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);

-- Jobs that the broker refused, those of their key behind them, and those that a FIFO queue takes only when they are due. Few.
-- next_at is infinity for a job that waits for the one before it, and for a parked one, which waits for an operator.
CREATE TABLE outbox_waiting (
    shard         smallint    NOT NULL,
    id            bigint      NOT NULL,
    created_at    timestamptz NOT NULL,
    due_at        timestamptz,
    queue         text        NOT NULL,
    order_key     bytea,
    message_group bytea,
    dedup_id      bytea       NOT NULL,
    headers       bytea,
    body          bytea,
    attempts      int         NOT NULL,
    last_error    text        NOT NULL,
    tried_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_at       timestamptz NOT NULL,
    parked        boolean     NOT NULL,
    PRIMARY KEY (shard, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_waiting_next ON outbox_waiting (shard, next_at);
CREATE INDEX outbox_waiting_keys ON outbox_waiting (shard, queue, order_key, id) WHERE order_key IS NOT NULL;

-- A relay leases shards, not rows. token tells a relay whether a shard is still its own.
CREATE TABLE outbox_shards (
    n            smallint    PRIMARY KEY,
    token        bigint      NOT NULL DEFAULT 0,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    served_at    timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
INSERT INTO outbox_shards (n) SELECT generate_series(0, 63);

-- Which of the two tables takes new rows. One row.
CREATE TABLE outbox_turn (
    turn smallint NOT NULL CHECK (turn IN (0, 1))
) WITH (fillfactor = 10);
INSERT INTO outbox_turn VALUES (0);

-- Until when relays want to be notified, in seconds since 1970: a sequence, because its value is seen at once, by every snapshot, and
-- setting it leaves no dead row. While relays are busy they want nothing, since transactions that notify commit one at a time.
CREATE SEQUENCE outbox_told;
