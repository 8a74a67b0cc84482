-- The state of a test. Locks nothing.
select worker, state, result from tocsin.channel_test where id = %(id)s
