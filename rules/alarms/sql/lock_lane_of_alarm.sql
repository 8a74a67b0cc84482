-- Locks the partition whose inputs the rule of an alarm evaluates: waits for the running batch, and
-- blocks new ones until the commit. No row: the alarm has no state, so it is not open.
select p.lane, p.partition, p.last_seq, p.watermark
from tocsin.rule_state s
join tocsin.lane_partition p on p.lane = s.lane and p.partition = s.partition
where s.event_rule = %(rule)s and s.owner = %(owner)s and s.instance = %(instance)s
for no key update of p
