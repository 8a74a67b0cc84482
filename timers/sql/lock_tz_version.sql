-- Wait briefly until no open edit has read the stored tz version. Later edits wait meanwhile.
select set_config('lock_timeout', '100ms', true), tocsin.lock_tz_version()
