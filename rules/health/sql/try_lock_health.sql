-- The lock for writing health, if it is free: another worker that holds it decides instead. An
-- apply waits for it (rules.apply/lock_health).
select pg_try_advisory_xact_lock(hashtext('tocsin.health'))
