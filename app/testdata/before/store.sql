SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA caisson_before;
CREATE FUNCTION caisson_before.dead_depth_count() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'caisson_before'
    AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		INSERT INTO dead_depth
		SELECT gen, state, CASE state WHEN 'dead' THEN queue ELSE '' END, CASE state WHEN 'dead' THEN cause ELSE '' END,
			CASE state WHEN 'held' THEN destination ELSE '' END, count(*)
		FROM entered WHERE state IN ('dead', 'held') GROUP BY 1, 2, 3, 4, 5;
	ELSIF TG_OP = 'DELETE' THEN
		INSERT INTO dead_depth
		SELECT gen, state, CASE state WHEN 'dead' THEN queue ELSE '' END, CASE state WHEN 'dead' THEN cause ELSE '' END,
			CASE state WHEN 'held' THEN destination ELSE '' END, -count(*)
		FROM gone WHERE state IN ('dead', 'held') GROUP BY 1, 2, 3, 4, 5;
	ELSE
		INSERT INTO dead_depth
		SELECT gen, state, CASE state WHEN 'dead' THEN queue ELSE '' END, CASE state WHEN 'dead' THEN cause ELSE '' END,
			CASE state WHEN 'held' THEN destination ELSE '' END, sum(n)
		FROM (SELECT gen, state, queue, cause, destination, 1 AS n FROM entered
			UNION ALL SELECT gen, state, queue, cause, destination, -1 FROM gone) change
		WHERE state IN ('dead', 'held') GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
	END IF;
	RETURN NULL;
END
$$;
SET default_tablespace = '';
CREATE TABLE caisson_before.claims (
    gen integer NOT NULL,
    attempt integer,
    id uuid NOT NULL,
    token bigint NOT NULL,
    until timestamp with time zone,
    expires timestamp with time zone,
    not_before timestamp with time zone,
    result_size bigint,
    run integer NOT NULL,
    state smallint NOT NULL,
    closed boolean,
    scope bytea NOT NULL,
    value bytea NOT NULL,
    job bytea,
    payload bytea,
    owner bytea NOT NULL,
    result bytea,
    result_hash bytea,
    history bytea
)
PARTITION BY LIST (gen);
SET default_table_access_method = heap;
CREATE TABLE caisson_before.claims_1 (
    gen integer NOT NULL,
    attempt integer,
    id uuid NOT NULL,
    token bigint NOT NULL,
    until timestamp with time zone,
    expires timestamp with time zone,
    not_before timestamp with time zone,
    result_size bigint,
    run integer NOT NULL,
    state smallint NOT NULL,
    closed boolean,
    scope bytea NOT NULL,
    value bytea NOT NULL,
    job bytea,
    payload bytea,
    owner bytea NOT NULL,
    result bytea,
    result_hash bytea,
    history bytea
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='1.5', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_insert_threshold='-1', autovacuum_analyze_threshold='2147483647');
CREATE VIEW caisson_before.claims_readable AS
 SELECT c.gen,
    encode(c.scope, 'escape'::text) AS scope,
    encode(c.value, 'escape'::text) AS value,
        CASE c.state
            WHEN 0 THEN
            CASE
                WHEN c.closed THEN 'closed'::text
                ELSE 'free'::text
            END
            WHEN 1 THEN 'claimed'::text
            WHEN 4 THEN 'completed'::text
            ELSE NULL::text
        END AS state,
    encode(COALESCE(c.job, c.value), 'escape'::text) AS job,
    c.run,
    encode(c.owner, 'escape'::text) AS owner,
    c.token,
    c.until,
    c.not_before,
    c.expires,
    c.attempt,
    encode(c.result, 'escape'::text) AS result,
    c.result_size,
    encode(c.history, 'escape'::text) AS history
   FROM caisson_before.claims c;
CREATE TABLE caisson_before.dead_depth (
    gen integer NOT NULL,
    state text NOT NULL,
    queue bytea NOT NULL,
    cause bytea NOT NULL,
    destination bytea NOT NULL,
    entries bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000');
CREATE TABLE caisson_before.dead_letter_audit (
    seq bigint NOT NULL,
    id bytea NOT NULL,
    action bytea NOT NULL,
    actor bytea NOT NULL,
    filter bytea NOT NULL,
    planned bigint NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    refused bigint DEFAULT 0 NOT NULL,
    state text NOT NULL,
    problem bytea DEFAULT '\x'::bytea NOT NULL,
    silence bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
);
ALTER TABLE caisson_before.dead_letter_audit ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME caisson_before.dead_letter_audit_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE caisson_before.dead_letters (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    id bytea NOT NULL,
    job bytea NOT NULL,
    run bigint NOT NULL,
    state text NOT NULL,
    queue bytea NOT NULL,
    kind bytea NOT NULL,
    key bytea NOT NULL,
    destination bytea NOT NULL,
    fifo_group bytea NOT NULL,
    cause bytea NOT NULL,
    fingerprint bytea NOT NULL,
    attempt_count bigint NOT NULL,
    enqueued_at timestamp with time zone,
    first_failed_at timestamp with time zone,
    last_failed_at timestamp with time zone,
    stored_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    reserved_until timestamp with time zone,
    owner bytea,
    closed_by bytea,
    size bigint NOT NULL,
    json smallint NOT NULL,
    error text NOT NULL,
    error_bytes bytea,
    attempts text
)
PARTITION BY LIST (gen);
CREATE TABLE caisson_before.dead_letters_1 (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    id bytea NOT NULL,
    job bytea NOT NULL,
    run bigint NOT NULL,
    state text NOT NULL,
    queue bytea NOT NULL,
    kind bytea NOT NULL,
    key bytea NOT NULL,
    destination bytea NOT NULL,
    fifo_group bytea NOT NULL,
    cause bytea NOT NULL,
    fingerprint bytea NOT NULL,
    attempt_count bigint NOT NULL,
    enqueued_at timestamp with time zone,
    first_failed_at timestamp with time zone,
    last_failed_at timestamp with time zone,
    stored_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    reserved_until timestamp with time zone,
    owner bytea,
    closed_by bytea,
    size bigint NOT NULL,
    json smallint NOT NULL,
    error text NOT NULL,
    error_bytes bytea,
    attempts text
);
CREATE SEQUENCE caisson_before.dead_letters_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE caisson_before.dead_messages (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    body bytea NOT NULL,
    headers bytea,
    payload jsonb
)
PARTITION BY LIST (gen);
CREATE TABLE caisson_before.dead_messages_1 (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    body bytea NOT NULL,
    headers bytea,
    payload jsonb
);
CREATE UNLOGGED TABLE caisson_before.fleet (
    id bytea NOT NULL,
    at timestamp with time zone NOT NULL,
    report bytea NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE caisson_before.generations (
    family text NOT NULL,
    gen integer NOT NULL,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
COMMENT ON TABLE caisson_before.generations IS 'Writers lock it IN ROW SHARE MODE before they insert; opening a generation locks it IN EXCLUSIVE MODE.';
CREATE SEQUENCE caisson_before.outbox_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE caisson_before.outbox (
    shard smallint NOT NULL,
    id bigint DEFAULT nextval('caisson_before.outbox_ids'::regclass) NOT NULL,
    turn smallint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    due_at timestamp with time zone,
    queue text NOT NULL,
    order_key bytea,
    message_group bytea,
    dedup_id bytea NOT NULL,
    headers bytea,
    body bytea
)
PARTITION BY LIST (turn);
CREATE TABLE caisson_before.outbox_0 (
    shard smallint NOT NULL,
    id bigint DEFAULT nextval('caisson_before.outbox_ids'::regclass) NOT NULL,
    turn smallint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    due_at timestamp with time zone,
    queue text NOT NULL,
    order_key bytea,
    message_group bytea,
    dedup_id bytea NOT NULL,
    headers bytea,
    body bytea
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='50000', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='50000');
CREATE TABLE caisson_before.outbox_1 (
    shard smallint NOT NULL,
    id bigint DEFAULT nextval('caisson_before.outbox_ids'::regclass) NOT NULL,
    turn smallint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    due_at timestamp with time zone,
    queue text NOT NULL,
    order_key bytea,
    message_group bytea,
    dedup_id bytea NOT NULL,
    headers bytea,
    body bytea
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='50000', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='50000');
CREATE TABLE caisson_before.outbox_shards (
    n smallint NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    served_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
)
WITH (fillfactor='10', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');
CREATE SEQUENCE caisson_before.outbox_told
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE caisson_before.outbox_turn (
    turn smallint NOT NULL,
    CONSTRAINT outbox_turn_turn_check CHECK ((turn = ANY (ARRAY[0, 1])))
)
WITH (fillfactor='10');
CREATE TABLE caisson_before.outbox_waiting (
    shard smallint NOT NULL,
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    queue text NOT NULL,
    order_key bytea,
    message_group bytea,
    dedup_id bytea NOT NULL,
    headers bytea,
    body bytea,
    attempts integer NOT NULL,
    last_error text NOT NULL,
    tried_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    next_at timestamp with time zone NOT NULL,
    parked boolean NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');
CREATE TABLE caisson_before.runs (
    gen integer NOT NULL,
    attempt integer NOT NULL,
    id uuid NOT NULL,
    not_before timestamp with time zone,
    expires timestamp with time zone,
    run integer NOT NULL,
    closed boolean NOT NULL,
    job bytea NOT NULL,
    history bytea
)
PARTITION BY LIST (gen);
CREATE TABLE caisson_before.runs_1 (
    gen integer NOT NULL,
    attempt integer NOT NULL,
    id uuid NOT NULL,
    not_before timestamp with time zone,
    expires timestamp with time zone,
    run integer NOT NULL,
    closed boolean NOT NULL,
    job bytea NOT NULL,
    history bytea
)
WITH (autovacuum_vacuum_scale_factor='1.5', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_insert_threshold='-1', autovacuum_analyze_threshold='2147483647');
CREATE TABLE caisson_before.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE caisson_before.webhook_attempts (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant bytea NOT NULL,
    endpoint bytea NOT NULL,
    event bytea NOT NULL,
    job bytea NOT NULL,
    number integer NOT NULL,
    status integer NOT NULL,
    phase text NOT NULL,
    duration bigint NOT NULL,
    excerpt text NOT NULL,
    error text NOT NULL,
    request_id text NOT NULL,
    resent boolean NOT NULL,
    cut_off boolean NOT NULL
)
PARTITION BY LIST (gen);
CREATE TABLE caisson_before.webhook_attempts_1 (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant bytea NOT NULL,
    endpoint bytea NOT NULL,
    event bytea NOT NULL,
    job bytea NOT NULL,
    number integer NOT NULL,
    status integer NOT NULL,
    phase text NOT NULL,
    duration bigint NOT NULL,
    excerpt text NOT NULL,
    error text NOT NULL,
    request_id text NOT NULL,
    resent boolean NOT NULL,
    cut_off boolean NOT NULL
);
CREATE SEQUENCE caisson_before.webhook_attempts_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 50;
CREATE TABLE caisson_before.webhook_endpoint_health (
    endpoint bytea NOT NULL,
    failures bigint NOT NULL,
    failing_since timestamp with time zone,
    last_success timestamp with time zone,
    last_failure timestamp with time zone,
    recovered_at timestamp with time zone
)
WITH (fillfactor='50');
CREATE TABLE caisson_before.webhook_endpoint_revision (
    one boolean DEFAULT true NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT webhook_endpoint_revision_one_check CHECK (one)
)
WITH (fillfactor='10');
CREATE TABLE caisson_before.webhook_endpoint_secrets (
    fingerprint bytea NOT NULL,
    endpoint bytea NOT NULL
);
CREATE TABLE caisson_before.webhook_endpoints (
    id bytea NOT NULL,
    tenant bytea NOT NULL,
    state text NOT NULL,
    reason bytea NOT NULL,
    since timestamp with time zone,
    settings bytea NOT NULL,
    sealed bytea NOT NULL,
    key bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    revision bigint NOT NULL,
    deleted boolean NOT NULL
);
CREATE TABLE caisson_before.webhook_events (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    tenant bytea NOT NULL,
    id bytea NOT NULL,
    type bytea NOT NULL,
    content_type bytea NOT NULL,
    at timestamp with time zone NOT NULL,
    body bytea NOT NULL
)
PARTITION BY LIST (gen);
CREATE TABLE caisson_before.webhook_events_1 (
    gen integer NOT NULL,
    seq bigint NOT NULL,
    tenant bytea NOT NULL,
    id bytea NOT NULL,
    type bytea NOT NULL,
    content_type bytea NOT NULL,
    at timestamp with time zone NOT NULL,
    body bytea NOT NULL
);
CREATE SEQUENCE caisson_before.webhook_events_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE caisson_before.webhook_lines (
    endpoint bytea NOT NULL,
    head bigint,
    since timestamp with time zone,
    enqueued_at timestamp with time zone,
    times integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE caisson_before.webhook_places (
    endpoint bytea NOT NULL,
    seq bigint NOT NULL,
    tenant bytea NOT NULL,
    event bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000');
CREATE SEQUENCE caisson_before.webhook_places_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER TABLE ONLY caisson_before.claims ATTACH PARTITION caisson_before.claims_1 FOR VALUES IN (1);
ALTER TABLE ONLY caisson_before.dead_letters ATTACH PARTITION caisson_before.dead_letters_1 FOR VALUES IN (1);
ALTER TABLE ONLY caisson_before.dead_messages ATTACH PARTITION caisson_before.dead_messages_1 FOR VALUES IN (1);
ALTER TABLE ONLY caisson_before.outbox ATTACH PARTITION caisson_before.outbox_0 FOR VALUES IN ('0');
ALTER TABLE ONLY caisson_before.outbox ATTACH PARTITION caisson_before.outbox_1 FOR VALUES IN ('1');
ALTER TABLE ONLY caisson_before.runs ATTACH PARTITION caisson_before.runs_1 FOR VALUES IN (1);
ALTER TABLE ONLY caisson_before.webhook_attempts ATTACH PARTITION caisson_before.webhook_attempts_1 FOR VALUES IN (1);
ALTER TABLE ONLY caisson_before.webhook_events ATTACH PARTITION caisson_before.webhook_events_1 FOR VALUES IN (1);
INSERT INTO caisson_before.claims_1 VALUES (1, NULL, '0bafe221-56d2-698c-143b-7dbed51e9443', 1796085572610831, NULL, '2026-12-03 00:39:32.616053+00', NULL, NULL, 0, 4, false, '\x6e6f7465', '\x6f726465722d31', '\x636f6d706c65746564', '\xcde0e5c6d7af3b3cffe0c3607747876b1c51f31b5200c4564478ca8ce240937e', '\x766d2f3231303232', NULL, NULL, NULL);
INSERT INTO caisson_before.claims_1 VALUES (1, NULL, '4ad2c0be-d290-fc7e-21ad-0f23b4a70cf8', 1796085572602770, NULL, '2026-12-03 00:39:32.626539+00', NULL, NULL, 0, 0, false, '\x726566757365', '\x636172642d37', '\x64656164', NULL, '\x766d2f3231303232', NULL, NULL, NULL);
INSERT INTO caisson_before.dead_depth VALUES (1, 'dead', '\x64656661756c74', '\x72656a6563746564', '\x', 1);
INSERT INTO caisson_before.dead_letters_1 VALUES (1, 1, '\x646561642e30', '\x64656164', 0, 'dead', '\x64656661756c74', '\x726566757365', '\x636172642d37', '\x62616e6b', '\x', '\x72656a6563746564', '\x316338303465363831623464', 1, '2026-12-01 00:39:32.492072+00', '2026-12-01 00:39:32.608721+00', '2026-12-01 00:39:32.608721+00', '2026-12-01 00:39:32.614767+00', '2026-12-01 00:39:32.614767+00', NULL, NULL, NULL, 13, 1, 'card refused', NULL, '[{"number":1,"started":"2026-12-01T00:39:32.608610908Z","ended":"2026-12-01T00:39:32.608721311Z","error":"card refused"}]');
INSERT INTO caisson_before.dead_messages_1 VALUES (1, 1, '\x7b2263617264223a22c3a9227d', '\x010763616973736f6e96017b2276223a312c226964223a2264656164222c226b696e64223a22726566757365222c226b6579223a22636172642d37222c2264657374696e6174696f6e223a2262616e6b222c22656e7175657565645f6174223a22323032362d31322d30315430303a33393a33322e34393230373236345a222c2268656164657273223a7b227472616365706172656e74223a2230302d78227d7d', '{"card": "é"}');
INSERT INTO caisson_before.fleet VALUES ('\x4b4c4f4b594255515132534854354f534c594d4847564b46484c', '2026-12-01 00:39:36.530914+00', '\x7b226964223a224b4c4f4b594255515132534854354f534c594d4847564b46484c222c226f776e6572223a22766d2f3231303232222c22686f7374223a22766d222c22706964223a32313032322c2276657273696f6e223a2228646576656c29222c2262726f6b6572223a22656d626564646564222c2273746172746564223a22323032362d31322d30315430303a33393a33322e3538313434343330375a222c2273656e74223a22323032362d31322d30315430303a33393a33362e3533303633353139385a222c22696e5f666c69676874223a302c226162616e646f6e6564223a302c22717565756573223a5b7b226e616d65223a2264656661756c74222c22736c6f7473223a32302c22696e5f757365223a307d5d2c226b696e6473223a5b7b226e616d65223a226e6f7465222c226d61785f617474656d707473223a342c226b65796564223a747275657d2c7b226e616d65223a22726566757365222c226d61785f617474656d707473223a342c226b65796564223a747275657d2c7b226e616d65223a22776562686f6f6b2e64656c69766572222c226d61785f617474656d707473223a382c226b65796564223a747275657d5d7d');
INSERT INTO caisson_before.generations VALUES ('claims', 1, '2026-12-01 00:39:32.236669+00');
INSERT INTO caisson_before.generations VALUES ('dead_letters', 1, '2026-12-01 00:39:32.269112+00');
INSERT INTO caisson_before.generations VALUES ('dead_messages', 1, '2026-12-01 00:39:32.273498+00');
INSERT INTO caisson_before.generations VALUES ('webhook_events', 1, '2026-12-01 00:39:32.424435+00');
INSERT INTO caisson_before.generations VALUES ('webhook_attempts', 1, '2026-12-01 00:39:32.437777+00');
INSERT INTO caisson_before.outbox_0 VALUES (48, 1, 0, '2026-12-01 00:39:52.93766+00', NULL, 'default', NULL, '\x73686f70', '\x4a3455575936504c5637334436455949414a5a4f494541415252', '\x0763616973736f6e97017b2276223a312c226964223a22626f786564222c226b696e64223a226e6f7465222c226b6579223a226b2d626f786564222c2264657374696e6174696f6e223a2273686f70222c22656e7175657565645f6174223a22323032362d31322d30315430303a33393a35322e3933323732303834385a222c2268656164657273223a7b227472616365706172656e74223a2230302d7a227d7d', '\x00ff20626f786564');
INSERT INTO caisson_before.outbox_shards VALUES (0, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (1, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (2, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (3, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (4, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (5, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (6, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (7, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (8, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (9, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (10, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (11, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (12, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (13, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (14, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (15, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (16, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (17, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (18, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (19, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (20, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (21, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (22, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (23, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (24, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (25, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (26, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (27, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (28, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (29, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (30, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (31, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (32, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (33, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (34, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (35, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (36, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (37, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (38, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (39, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (40, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (41, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (42, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (43, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (44, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (45, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (46, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (47, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (48, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (49, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (50, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (51, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (52, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (53, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (54, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (55, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (56, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (57, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (58, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (59, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (60, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (61, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (62, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_shards VALUES (63, 0, '-infinity', '-infinity');
INSERT INTO caisson_before.outbox_turn VALUES (0);
INSERT INTO caisson_before.runs_1 VALUES (1, 1, '4ddb3e96-801a-1ee2-b77d-c5247c0db478', NULL, '2026-12-03 00:39:32.616053+00', 0, false, '\x636f6d706c65746564', NULL);
INSERT INTO caisson_before.runs_1 VALUES (1, 1, '28a3a5e8-1d1e-89f0-efc7-0b63bf717b92', NULL, '2026-12-03 00:39:32.626539+00', 0, true, '\x64656164', '\x5b7b226e756d626572223a312c2273746172746564223a22323032362d31322d30315430303a33393a33322e3630383631303930385a222c22656e646564223a22323032362d31322d30315430303a33393a33322e3630383732313331315a222c226572726f72223a22636172642072656675736564227d5d');
INSERT INTO caisson_before.schema_migrations VALUES (1, 'generations', '2026-12-01 00:39:32.202253+00');
INSERT INTO caisson_before.schema_migrations VALUES (2, 'claims', '2026-12-01 00:39:32.217081+00');
INSERT INTO caisson_before.schema_migrations VALUES (3, 'dead_letters', '2026-12-01 00:39:32.24113+00');
INSERT INTO caisson_before.schema_migrations VALUES (4, 'outbox', '2026-12-01 00:39:32.298247+00');
INSERT INTO caisson_before.schema_migrations VALUES (5, 'fleet', '2026-12-01 00:39:32.349141+00');
INSERT INTO caisson_before.schema_migrations VALUES (6, 'webhook_endpoints', '2026-12-01 00:39:32.365161+00');
INSERT INTO caisson_before.schema_migrations VALUES (7, 'webhook_journal', '2026-12-01 00:39:32.417097+00');
INSERT INTO caisson_before.webhook_endpoint_revision VALUES (true, 1);
INSERT INTO caisson_before.webhook_endpoint_secrets VALUES ('\xa31e23ce06538ec502f40e26dcd40239166ea47dc58d46dbd2b922afdaa531f8', '\x73686f70');
INSERT INTO caisson_before.webhook_endpoints VALUES ('\x73686f70', '\x64656661756c74', 'active', '\x', '2026-12-01 00:39:37.57088+00', '\x7b2276657273696f6e223a312c226f726967696e223a2268747470733a2f2f686f6f6b732e6578616d706c652e636f6d222c226576656e7473223a5b22696e766f6963652e2a225d2c22636c69656e745f6572726f7273223a227265747279222c22636f6e63757272656e6379223a332c227363686564756c65223a2266697865642835732c203130732c2078302e382e2e312e3229227d', '\x224f67b7103f2aff0678995be559ad96e7e205a82e41070835ae0e245b855b34beb9ec9c8cbd89b37da5e3505ca28ef1ba8fba0c3b0354dfa446b16620306169fb7af13a8ae8688f435d3de301c28cb04a46788296e632ccaced835ec1f4899e211e44613d114278ba5512d1cf1274f24ac3f31d438d912151006c7e8e432fe756be3fde2d7fcdf7c1507ac435f97b68f97728c9778dabbaba61ee0ac638f1f2210591c5', '\x37356262363463643133656239363139', '2026-12-01 00:39:37.571701+00', '2026-12-01 00:39:37.571701+00', 1, false);
SELECT pg_catalog.setval('caisson_before.dead_letter_audit_seq_seq', 1, false);
SELECT pg_catalog.setval('caisson_before.dead_letters_seq', 1, true);
SELECT pg_catalog.setval('caisson_before.outbox_ids', 1, true);
SELECT pg_catalog.setval('caisson_before.outbox_told', 1, false);
SELECT pg_catalog.setval('caisson_before.webhook_attempts_seq', 1, false);
SELECT pg_catalog.setval('caisson_before.webhook_events_seq', 1, false);
SELECT pg_catalog.setval('caisson_before.webhook_places_seq', 1, false);
ALTER TABLE ONLY caisson_before.dead_letter_audit
    ADD CONSTRAINT dead_letter_audit_id_key UNIQUE (id);
ALTER TABLE ONLY caisson_before.dead_letter_audit
    ADD CONSTRAINT dead_letter_audit_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY caisson_before.dead_letters_1
    ADD CONSTRAINT dead_letters_1_id_key UNIQUE (id);
ALTER TABLE ONLY caisson_before.dead_letters_1
    ADD CONSTRAINT dead_letters_1_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY caisson_before.dead_messages_1
    ADD CONSTRAINT dead_messages_1_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY caisson_before.fleet
    ADD CONSTRAINT fleet_pkey PRIMARY KEY (id);
ALTER TABLE ONLY caisson_before.generations
    ADD CONSTRAINT generations_pkey PRIMARY KEY (family, gen);
ALTER TABLE ONLY caisson_before.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (shard, id, turn);
ALTER TABLE ONLY caisson_before.outbox_0
    ADD CONSTRAINT outbox_0_pkey PRIMARY KEY (shard, id, turn);
ALTER TABLE ONLY caisson_before.outbox_1
    ADD CONSTRAINT outbox_1_pkey PRIMARY KEY (shard, id, turn);
ALTER TABLE ONLY caisson_before.outbox_shards
    ADD CONSTRAINT outbox_shards_pkey PRIMARY KEY (n);
ALTER TABLE ONLY caisson_before.outbox_waiting
    ADD CONSTRAINT outbox_waiting_pkey PRIMARY KEY (shard, id);
ALTER TABLE ONLY caisson_before.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY caisson_before.webhook_endpoint_health
    ADD CONSTRAINT webhook_endpoint_health_pkey PRIMARY KEY (endpoint);
ALTER TABLE ONLY caisson_before.webhook_endpoint_revision
    ADD CONSTRAINT webhook_endpoint_revision_pkey PRIMARY KEY (one);
ALTER TABLE ONLY caisson_before.webhook_endpoint_secrets
    ADD CONSTRAINT webhook_endpoint_secrets_pkey PRIMARY KEY (fingerprint);
ALTER TABLE ONLY caisson_before.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY caisson_before.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_revision_key UNIQUE (revision);
ALTER TABLE ONLY caisson_before.webhook_events_1
    ADD CONSTRAINT webhook_events_1_pkey PRIMARY KEY (tenant, id);
ALTER TABLE ONLY caisson_before.webhook_lines
    ADD CONSTRAINT webhook_lines_pkey PRIMARY KEY (endpoint);
ALTER TABLE ONLY caisson_before.webhook_places
    ADD CONSTRAINT webhook_places_endpoint_event_tenant_key UNIQUE (endpoint, event, tenant);
ALTER TABLE ONLY caisson_before.webhook_places
    ADD CONSTRAINT webhook_places_pkey PRIMARY KEY (endpoint, seq);
CREATE UNIQUE INDEX claims_1_id_idx ON caisson_before.claims_1 USING btree (id);
CREATE INDEX claims_1_job_idx ON caisson_before.claims_1 USING hash (job) WHERE (job IS NOT NULL);
CREATE INDEX dead_letter_audit_list ON caisson_before.dead_letter_audit USING btree (started_at, seq);
CREATE INDEX dead_letters_1_changed ON caisson_before.dead_letters_1 USING btree (changed_at) WHERE (state <> 'held'::text);
CREATE INDEX dead_letters_1_held ON caisson_before.dead_letters_1 USING btree (destination, stored_at) WHERE (state = 'held'::text);
CREATE INDEX dead_letters_1_list ON caisson_before.dead_letters_1 USING btree (state, stored_at, seq);
CREATE INDEX dead_letters_1_odd ON caisson_before.dead_letters_1 USING btree (stored_at, seq) WHERE (json = 2);
CREATE INDEX dead_messages_1_payload ON caisson_before.dead_messages_1 USING gin (payload jsonb_path_ops);
CREATE INDEX outbox_waiting_keys ON caisson_before.outbox_waiting USING btree (shard, queue, order_key, id) WHERE (order_key IS NOT NULL);
CREATE INDEX outbox_waiting_next ON caisson_before.outbox_waiting USING btree (shard, next_at);
CREATE UNIQUE INDEX runs_1_id_idx ON caisson_before.runs_1 USING btree (id);
CREATE INDEX webhook_attempts_1_at ON caisson_before.webhook_attempts_1 USING btree (at, seq);
CREATE INDEX webhook_attempts_1_endpoint ON caisson_before.webhook_attempts_1 USING btree (endpoint, at, seq);
CREATE INDEX webhook_attempts_1_event ON caisson_before.webhook_attempts_1 USING btree (event, endpoint, at, seq);
CREATE INDEX webhook_attempts_1_failed ON caisson_before.webhook_attempts_1 USING btree (endpoint, at, seq) WHERE ((status < 200) OR (status > 299));
CREATE INDEX webhook_endpoint_secrets_endpoint ON caisson_before.webhook_endpoint_secrets USING btree (endpoint);
CREATE INDEX webhook_endpoints_deleted ON caisson_before.webhook_endpoints USING btree (updated_at) WHERE deleted;
CREATE INDEX webhook_endpoints_tenant ON caisson_before.webhook_endpoints USING btree (tenant, id) WHERE (NOT deleted);
CREATE INDEX webhook_events_1_list ON caisson_before.webhook_events_1 USING btree (tenant, at, seq);
ALTER INDEX caisson_before.outbox_pkey ATTACH PARTITION caisson_before.outbox_0_pkey;
ALTER INDEX caisson_before.outbox_pkey ATTACH PARTITION caisson_before.outbox_1_pkey;
CREATE TRIGGER dead_depth_delete AFTER DELETE ON caisson_before.dead_letters REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION caisson_before.dead_depth_count();
CREATE TRIGGER dead_depth_insert AFTER INSERT ON caisson_before.dead_letters REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION caisson_before.dead_depth_count();
CREATE TRIGGER dead_depth_update AFTER UPDATE ON caisson_before.dead_letters REFERENCING OLD TABLE AS gone NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION caisson_before.dead_depth_count();
