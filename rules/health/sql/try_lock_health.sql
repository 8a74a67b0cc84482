-- The lock for writing health, if it is free: another worker that holds it decides instead. An
-- apply waits for it (rules.apply/lock_health).
select tocsin.try_lock_health()
