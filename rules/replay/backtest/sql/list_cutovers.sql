-- The position of every partition at every apply.
select lane, partition, rules_seq, seq, watermark
from tocsin.rule_cutover
order by lane, partition, rules_seq
