-- A name under which other sessions can read as of this moment, for as long as this transaction is open.
select pg_export_snapshot()
