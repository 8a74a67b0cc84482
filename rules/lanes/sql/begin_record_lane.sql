-- The record lane of a new instance begins at the oldest rule, because no rule sees events from
-- before it was applied; without rules, at the head of the record log. A lane that has begun keeps
-- its position.
insert into tocsin.lane_partition (lane, partition, last_seq)
select 'record', 0, least(
    (select min(v.from_seq) from tocsin.rule_version v),
    greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)))
from tocsin.log_head h
on conflict do nothing
