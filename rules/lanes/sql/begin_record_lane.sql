-- The record lane of a new installation begins where the oldest rule does, for no rule sees events before it was applied;
-- without any rule, at the head of the log. One that has begun stays where it is.
insert into tocsin.lane_partition (lane, partition, last_seq)
select 'record', 0, least(
    (select min(v.from_seq) from tocsin.rule_version v),
    greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)))
from tocsin.log_head h
on conflict do nothing
