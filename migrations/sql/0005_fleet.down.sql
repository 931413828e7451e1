-- Loses: what workers report of themselves; they report it again.
DROP TABLE fleet;
