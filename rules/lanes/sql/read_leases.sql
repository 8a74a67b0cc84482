-- Every partition with its holder, the seconds until the lease ends, and whether states change before its
-- watermark although nothing arrives. No lock. Index: rule_state_recheck.
select p.lane, p.partition, p.holder, coalesce(extract(epoch from p.held_until - tocsin.instant()), 0)::float8,
       exists (
           select from tocsin.rule_state s
           where s.lane = p.lane and s.partition = p.partition and s.recheck_at < p.watermark)
from tocsin.lane_partition p
order by p.lane, p.partition
