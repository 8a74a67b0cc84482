-- Where every partition of every lane stands, in the transaction of the apply that changes the rules. lock_partitions keeps it so.
insert into tocsin.rule_switch (lane, partition, rules_seq, seq, complete_until)
select p.lane, p.partition, %(rules_seq)s, p.last_seq, p.complete_until
from tocsin.ingest_partition p
