-- One apply at a time, until its transaction ends.
select pg_advisory_xact_lock(hashtext('tocsin.rules'))
