-- The lock of tocsin.append: whoever notes facts about members does so before the members change, or after.
select pg_advisory_xact_lock(hashtext('tocsin.log'))
