-- The lock of tocsin.append: a session that records observations of members does so before the
-- members change, or after.
select tocsin.lock_log()
