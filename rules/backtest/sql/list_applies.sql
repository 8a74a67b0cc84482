-- The `rules-applied` events of all applies. Index: event's key.
select e.seq, e.ts, e.recorded_at
from (
    select from_seq as seq from tocsin.rule_version
    union
    select until_seq from tocsin.rule_version where until_seq is not null
) a
join tocsin.event e on e.seq = a.seq
order by e.seq
