-- One at a time moves health: a worker that is not first leaves it to the other. An apply waits for its turn (lock_health).
select pg_try_advisory_xact_lock(hashtext('tocsin.health'))
