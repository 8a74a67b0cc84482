-- The lock of tocsin.append, taken before it: members of systems change under it alone.
select pg_advisory_xact_lock(hashtext('tocsin.log'))
