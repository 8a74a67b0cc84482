-- A session of a frozen process ends after this long and releases its records. A limit that the
-- service set itself stays.
select set_config('idle_in_transaction_session_timeout', %(ms)s, false)
where current_setting('idle_in_transaction_session_timeout') = '0'
