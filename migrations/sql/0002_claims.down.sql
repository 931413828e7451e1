-- Loses: every claim and every remembered key with its attempts: jobs that have completed run again if they come again.
DROP VIEW claims_readable;
DROP TABLE runs;
DROP TABLE claims;
DELETE FROM generations WHERE family = 'claims';
