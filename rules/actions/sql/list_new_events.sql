-- Events after one seq and up to another, newest first. Locks nothing. Index: event's key.
select e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.severity,
       e.correlation_id, e.payload
from tocsin.event e
where e.seq > %(after_seq)s and e.seq <= %(until_seq)s and e.type <> 'rules-applied'
order by e.seq desc
limit %(limit)s
