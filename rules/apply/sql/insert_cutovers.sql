-- Records the position of every partition of every lane, in the transaction of the apply.
-- lock_partitions holds the rows, so the positions cannot move before the commit.
insert into tocsin.rule_cutover (lane, partition, rules_seq, seq, watermark)
select p.lane, p.partition, %(rules_seq)s, p.last_seq, p.watermark
from tocsin.lane_partition p
