-- Exports the snapshot of this transaction, under a name that other sessions can use while it is open.
select pg_export_snapshot()
