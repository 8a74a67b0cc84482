-- The lock of tocsin.append: a session that records observations of members does so before the
-- members change, or after.
select pg_advisory_xact_lock(hashtext('tocsin.log'))
