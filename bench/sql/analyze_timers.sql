-- Autovacuum does the same, a minute later.
analyze tocsin.timer
