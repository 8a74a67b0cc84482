-- Drop a detached table.
drop table if exists tocsin.{table}
