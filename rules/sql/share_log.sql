-- Until the transaction ends nobody appends. Waits for an append that is under way; lets other readers in.
select pg_advisory_xact_lock_shared(hashtext('tocsin.log'))
