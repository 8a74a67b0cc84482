-- The kind and id of the record at a seq, without the columns that may be unreadable. Index: the
-- primary keys.
select 'event', id from tocsin.event where seq = %(seq)s
union all
select 'action-step', id from tocsin.action_step where seq = %(seq)s
union all
select 'calculated-datapoint', id from tocsin.datapoint_calculated where seq = %(seq)s
