-- Dead letters and held jobs. Entries and their messages lie apart: lists, groups and counts never read a payload. Both live in
-- generations of their own: a message stays for as long as its entry does.
--
-- Names that users choose are bytea: they may hold any bytes.
CREATE SEQUENCE dead_letters_seq;
CREATE TABLE dead_letters (
	gen             int         NOT NULL,
	seq             bigint      NOT NULL, -- the message's, too
	id              bytea       NOT NULL,
	job             bytea       NOT NULL,
	run             bigint      NOT NULL,
	state           text        NOT NULL,
	queue           bytea       NOT NULL,
	kind            bytea       NOT NULL,
	key             bytea       NOT NULL,
	destination     bytea       NOT NULL,
	fifo_group      bytea       NOT NULL,
	cause           bytea       NOT NULL,
	fingerprint     bytea       NOT NULL,
	attempt_count   bigint      NOT NULL,
	enqueued_at     timestamptz,
	first_failed_at timestamptz,
	last_failed_at  timestamptz,
	stored_at       timestamptz NOT NULL,
	changed_at      timestamptz NOT NULL,
	reserved_until  timestamptz,
	owner           bytea, -- of the reservation
	closed_by       bytea, -- the owner whose reservation ended it
	size            bigint      NOT NULL, -- of the body
	json            smallint    NOT NULL, -- 0: the body is no JSON, 1: it is in payload, 2: it is JSON that is not in payload
	error           text        NOT NULL, -- to be searched: NUL is U+FFFD in it
	error_bytes     bytea, -- the error where it differs from that
	attempts        text -- JSON
) PARTITION BY LIST (gen);
CREATE TABLE dead_letters_1 PARTITION OF dead_letters (PRIMARY KEY (seq), UNIQUE (id)) FOR VALUES IN (1);
CREATE INDEX dead_letters_1_list ON dead_letters_1 (state, stored_at, seq);
CREATE INDEX dead_letters_1_held ON dead_letters_1 (destination, stored_at) WHERE state = 'held';
CREATE INDEX dead_letters_1_changed ON dead_letters_1 (changed_at) WHERE state <> 'held';
CREATE INDEX dead_letters_1_odd ON dead_letters_1 (stored_at, seq) WHERE json = 2;
INSERT INTO generations (family, gen) VALUES ('dead_letters', 1);

CREATE TABLE dead_messages (
	gen     int    NOT NULL,
	seq     bigint NOT NULL,
	body    bytea  NOT NULL,
	headers bytea,
	payload jsonb -- the body, where it is JSON that jsonb takes and not large
) PARTITION BY LIST (gen);
CREATE TABLE dead_messages_1 PARTITION OF dead_messages (PRIMARY KEY (seq)) FOR VALUES IN (1);
CREATE INDEX dead_messages_1_payload ON dead_messages_1 USING gin (payload jsonb_path_ops);
INSERT INTO generations (family, gen) VALUES ('dead_messages', 1);

-- How many entries are dead by queue and cause, and held by destination: the sum of what each statement added and took away. A trigger
-- keeps it, so that no statement can forget to. Rows of generations that were dropped do not count.
CREATE TABLE dead_depth (
	gen         int    NOT NULL,
	state       text   NOT NULL,
	queue       bytea  NOT NULL,
	cause       bytea  NOT NULL,
	destination bytea  NOT NULL,
	entries     bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE FUNCTION dead_depth_count() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE TRIGGER dead_depth_insert AFTER INSERT ON dead_letters REFERENCING NEW TABLE AS entered
	FOR EACH STATEMENT EXECUTE FUNCTION dead_depth_count();
CREATE TRIGGER dead_depth_update AFTER UPDATE ON dead_letters REFERENCING OLD TABLE AS gone NEW TABLE AS entered
	FOR EACH STATEMENT EXECUTE FUNCTION dead_depth_count();
CREATE TRIGGER dead_depth_delete AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS gone
	FOR EACH STATEMENT EXECUTE FUNCTION dead_depth_count();

-- Who ran what on how many entries.
CREATE TABLE dead_letter_audit (
	seq        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         bytea       NOT NULL UNIQUE,
	action     bytea       NOT NULL,
	actor      bytea       NOT NULL,
	filter     bytea       NOT NULL,
	planned    bigint      NOT NULL,
	done       bigint      NOT NULL DEFAULT 0,
	failed     bigint      NOT NULL DEFAULT 0,
	refused    bigint      NOT NULL DEFAULT 0,
	state      text        NOT NULL,
	problem    bytea       NOT NULL DEFAULT '',
	silence    bigint      NOT NULL, -- microseconds
	started_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	ended_at   timestamptz
);
CREATE INDEX dead_letter_audit_list ON dead_letter_audit (started_at, seq);
