-- Loses: nothing by itself: the list of partitions, which the other steps need.
DROP TABLE generations;
