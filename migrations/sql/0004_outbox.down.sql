-- Loses: jobs that were enqueued in transactions and not published yet.
DROP TABLE outbox_turn, outbox_shards, outbox_waiting, outbox;
DROP SEQUENCE outbox_told, outbox_ids;
