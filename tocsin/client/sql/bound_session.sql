-- A frozen process gives its records up after this long. What the service set itself stays.
select set_config('idle_in_transaction_session_timeout', %(ms)s, false)
where current_setting('idle_in_transaction_session_timeout') = '0'
