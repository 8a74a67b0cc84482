-- Events after a seq, in order, of the owners of some patterns. Index: primary key of event.
select seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at, alarm_id, severity,
       source_event_id, correlation_id, payload::text, epoch
from tocsin.event e
where e.seq > %(after)s and tocsin.owner_matches(e.owner, %(owners)s)
order by e.seq
limit %(limit)s
