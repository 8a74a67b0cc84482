-- One migrator at a time, until its transaction ends. The others wait as long as it takes: with the
-- lock_timeout of their session they would fail.
select set_config('lock_timeout', '0', true), pg_advisory_xact_lock(hashtext('tocsin.migrations'))
