-- The lock for writing health: an apply waits for the worker that holds it.
select pg_advisory_xact_lock(hashtext('tocsin.health'))
