-- Which record has a seq, without the columns that may be unreadable. Index: both primary keys.
select 'event', id from tocsin.event where seq = %(seq)s
union all
select 'action-step', id from tocsin.action_step where seq = %(seq)s
