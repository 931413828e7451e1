-- Claims of keys and the attempt ledger, in generations. What must not lose a byte (keys, ids) is bytea: text refuses NUL and bad UTF-8.
--
-- id is derived from the key, time-ordered where its value is a UUIDv7; the full bytes are kept beside it and verified. Keys of one value
-- share the first ten bytes of their ids, whatever their scope. The index is made on each partition: one on the parent would
-- have to hold gen as well.
CREATE TABLE claims (
	gen         int         NOT NULL,
	attempt     int,                   -- the holder's ledger; NULL when it is in runs
	id          uuid        NOT NULL,
	token       bigint      NOT NULL,
	until       timestamptz,           -- end of the claim
	expires     timestamptz,           -- end of a completed or closed record
	not_before  timestamptz,           -- the holder's ledger
	result_size bigint,
	run         int         NOT NULL,  -- with job the last holder
	state       smallint    NOT NULL,  -- 0 free, 1 claimed, 4 completed
	closed      bool,                  -- the holder's ledger
	scope       bytea       NOT NULL,
	value       bytea       NOT NULL,
	job         bytea,                 -- NULL when it equals value
	payload     bytea,                 -- fingerprint of the payload; NULL when the key is free for any
	owner       bytea       NOT NULL,
	result      bytea,
	result_hash bytea,                 -- set when the result was too long to keep
	history     bytea                  -- the holder's ledger: JSON
) PARTITION BY LIST (gen);

-- The ledger entry of a run that is not kept in a row of claims.
CREATE TABLE runs (
	gen        int         NOT NULL,
	attempt    int         NOT NULL,
	id         uuid        NOT NULL,   -- derived from job and run
	not_before timestamptz,
	expires    timestamptz,
	run        int         NOT NULL,
	closed     bool        NOT NULL,
	job        bytea       NOT NULL,
	history    bytea
) PARTITION BY LIST (gen);

-- The first partition is the pattern of those that follow. Half of each page is left for the completions of its claims, which then touch no
-- index. A partition is dropped whole, so it is vacuumed only if its rows change again and again, as with retries. It is not analyzed:
-- plans are kept while it grows from nothing to millions of rows, and must not be made for what it was.
CREATE TABLE claims_1 PARTITION OF claims FOR VALUES IN (1) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 1.5,
	autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2147483647);
CREATE UNIQUE INDEX ON claims_1 (id);
-- For people who look for a job: those of another key have no other way. A hash takes ids of any length.
CREATE INDEX ON claims_1 USING hash (job) WHERE job IS NOT NULL;
CREATE TABLE runs_1 PARTITION OF runs FOR VALUES IN (1) WITH (autovacuum_vacuum_scale_factor = 1.5,
	autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2147483647);
CREATE UNIQUE INDEX ON runs_1 (id);
INSERT INTO generations (family, gen) VALUES ('claims', 1);

-- For people: keys as text, with what is not printable ASCII as \ooo.
CREATE VIEW claims_readable AS
SELECT c.gen, encode(c.scope, 'escape') AS scope, encode(c.value, 'escape') AS value,
	CASE c.state WHEN 0 THEN CASE WHEN c.closed THEN 'closed' ELSE 'free' END WHEN 1 THEN 'claimed' WHEN 4 THEN 'completed' END AS state,
	encode(coalesce(c.job, c.value), 'escape') AS job, c.run, encode(c.owner, 'escape') AS owner, c.token, c.until, c.not_before, c.expires,
	c.attempt, encode(c.result, 'escape') AS result, c.result_size, encode(c.history, 'escape') AS history
FROM claims c;
