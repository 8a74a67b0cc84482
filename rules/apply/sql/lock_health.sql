-- The lock for writing health: an apply waits for the worker that holds it.
select tocsin.lock_health()
