-- The lock for calculating windows, if it is free: another worker that holds it calculates instead.
select pg_try_advisory_xact_lock(hashtext('tocsin.calc'))
