-- While the transaction lasts, nobody appends. False if somebody is about to commit: not waited for, asked again later.
select pg_try_advisory_xact_lock_shared(hashtext('tocsin.log'))
