-- A log that has lived for a while.
select tocsin.extend_log(%(count)s::integer)
