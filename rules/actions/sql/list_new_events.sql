-- Events after one seq and up to another, newest first, and how many there are of each type among
-- the newest 10,000. Locks nothing. Index: event's key.
with newest as (
    select e.*
    from tocsin.event e
    where e.seq > %(after_seq)s and e.seq <= %(until_seq)s and e.type <> 'rules-applied'
    order by e.seq desc
    limit 10000
)
select n.seq, n.id, n.ts, n.recorded_at, n.origin, n.type, n.schedule, n.rule, n.action, n.owner, n.severity,
       n.correlation_id, n.payload, count(*) over () as count
from newest n
order by n.seq desc
limit %(limit)s
