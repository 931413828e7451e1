-- Loses: every kept webhook event and attempt, and the deliveries that wait in the lines of ordered endpoints.
DROP TABLE webhook_places, webhook_lines, webhook_attempts, webhook_events;
DROP SEQUENCE webhook_places_seq, webhook_attempts_seq, webhook_events_seq;
DELETE FROM generations WHERE family IN ('webhook_events', 'webhook_attempts');
