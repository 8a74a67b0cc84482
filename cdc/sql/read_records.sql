-- Records of a range of seqs, in order, of all tables of the log in one round trip and one
-- snapshot. Index: the primary keys. The first column names the table; columns that a table lacks
-- are null (cdc.log_reader builds the records).
select 'event' as kind, seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at, alarm_id, severity,
       source_event_id, correlation_id, payload::text as payload, epoch,
       null::uuid as action_id, null::integer as step, null::integer as attempt, null::text as priority, null::text as key
from tocsin.event
where seq > %(after)s and seq <= %(until)s
union all
select 'action-step', seq, id, null, recorded_at, null, state, null, null, name, owner, null, null, null,
       source_event_id, correlation_id, result::text, null,
       action_id, step, attempt, priority, null
from tocsin.action_step
where seq > %(after)s and seq <= %(until)s
union all
select 'calculated-datapoint', seq, id, ts, recorded_at, null, kind, null, null, null, owner, null, null, null,
       null, correlation_id, payload::text, null,
       null, null, null, null, key
from tocsin.datapoint_calculated
where seq > %(after)s and seq <= %(until)s
order by seq
