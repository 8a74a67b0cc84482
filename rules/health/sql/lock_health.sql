-- The lock of those who move health, then that of tocsin.append: members change under both.
select pg_advisory_xact_lock(hashtext('tocsin.health')), pg_advisory_xact_lock(hashtext('tocsin.log'))
