-- Every owner of a series or a heartbeat, and of an event or a calculated datapoint from a seq on, with the partition
-- of its series, in byte order. Owners whose data was erased since are left out. Index: erasure_owner.
select o.owner, max(o.partition)
from (
    select owner, partition from tocsin.current_value
    union all
    select owner, partition from tocsin.rule_state where lane = 'data' and starts_with(event_rule, 'heartbeat:')
    union all
    select distinct owner, 0 from tocsin.event where seq >= %(first_seq)s
    union all
    select distinct owner, 0 from tocsin.datapoint_calculated where seq >= %(first_seq)s
) o
where not exists (select from tocsin.erasure x where x.owner = o.owner and x.seq >= %(first_seq)s)
group by o.owner
order by o.owner collate "C"
