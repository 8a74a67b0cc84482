-- Where every partition of every lane stands, in the transaction of the apply that changes the rules. lock_partitions keeps it so.
insert into tocsin.rule_cutover (lane, partition, rules_seq, seq, watermark)
select p.lane, p.partition, %(rules_seq)s, p.last_seq, p.watermark
from tocsin.lane_partition p
