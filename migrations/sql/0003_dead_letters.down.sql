-- Loses: every dead letter and held job, with its payload, and the record of replays and purges.
DROP TABLE dead_letter_audit, dead_depth, dead_messages, dead_letters;
DROP FUNCTION dead_depth_count();
DROP SEQUENCE dead_letters_seq;
DELETE FROM generations WHERE family IN ('dead_letters', 'dead_messages');
