-- What each worker said of itself last. See fleet/postgres for why it is unlogged and has no index beside its key.
CREATE UNLOGGED TABLE fleet (
	id     bytea       PRIMARY KEY,
	at     timestamptz NOT NULL,
	report bytea       NOT NULL
) WITH (fillfactor = 50);
