-- Prevents appends until the transaction ends. False if a session is about to commit: the caller
-- tries again later.
select pg_try_advisory_xact_lock_shared(hashtext('tocsin.log'))
