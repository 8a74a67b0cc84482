-- A table that is nobody's partition any more.
drop table if exists tocsin.{table}
