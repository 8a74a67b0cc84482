-- The lock of those who move health: an apply waits for the worker that is at it.
select pg_advisory_xact_lock(hashtext('tocsin.health'))
