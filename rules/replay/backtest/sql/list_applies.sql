-- The `rules-applied` events of all applies. One that has left the log gets the epoch as its time.
-- Index: event's key.
select a.seq, coalesce(e.ts, 'epoch'), coalesce(e.recorded_at, 'epoch')
from (
    select from_seq as seq from tocsin.rule_version
    union
    select until_seq from tocsin.rule_version where until_seq is not null
) a
left join tocsin.event e on e.seq = a.seq
order by a.seq
