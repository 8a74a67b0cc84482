-- Every owner of a series, or of an event or a verdict from a seq on, with the partition of its series, in the order of bytes.
select o.owner, max(o.partition)
from (
    select owner, partition from tocsin.current_value
    union all
    select distinct owner, 0 from tocsin.event where seq >= %(first_seq)s
    union all
    select distinct owner, 0 from tocsin.datapoint_calculated where seq >= %(first_seq)s
) o
group by o.owner
order by o.owner collate "C"
