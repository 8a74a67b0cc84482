-- An action with the event that started it. Index: action's key, event's key.
select a.name, a.document, a.state, a.active, a.owner, a.correlation_id, a.event_id,
       e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.severity,
       e.correlation_id, e.payload
from tocsin.action a
left join tocsin.event e on e.seq = a.event_seq
where a.id = %(id)s
