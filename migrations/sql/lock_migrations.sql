-- One migrator at a time, until its transaction ends. The others wait as long as it takes: a session's own
-- lock_timeout would make them fail.
select set_config('lock_timeout', '0', true), pg_advisory_xact_lock(hashtext('tocsin.migrations'))
