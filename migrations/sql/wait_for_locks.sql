-- Until the transaction ends, or the next change of the setting.
select set_config('lock_timeout', '0', true)
