-- One apply at a time, until its transaction ends.
select tocsin.lock_rules()
