-- From here on, a migration that cannot get a lock fails: every other session would queue behind
-- it.
select set_config('lock_timeout', '5s', true), set_config('idle_in_transaction_session_timeout', '0', true)
