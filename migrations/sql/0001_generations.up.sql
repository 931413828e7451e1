-- Rows that are needed for a while only live in generations: partitions that are opened one after the other and dropped whole, instead of
-- rows deleted one by one. New rows go to the newest generation of their family; see internal/pgdb.
CREATE TABLE generations (
	family    text        NOT NULL,
	gen       int         NOT NULL,
	opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (family, gen)
);
COMMENT ON TABLE generations IS 'Writers lock it IN ROW SHARE MODE before they insert; opening a generation locks it IN EXCLUSIVE MODE.';
