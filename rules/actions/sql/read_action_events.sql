-- The events of a run, oldest first: one, or those of its group. Locks nothing. Index:
-- action_event_of, event's key.
select e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.severity,
       e.correlation_id, e.payload
from tocsin.action_event l
join tocsin.event e on e.seq = l.event_seq
where l.action_id = %(id)s
order by l.event_seq
limit %(limit)s
