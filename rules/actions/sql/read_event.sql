-- One event by its seq. Locks nothing. Index: event's key.
select e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.severity,
       e.correlation_id, e.payload
from tocsin.event e
where e.seq = %(seq)s
