-- Every place at which the data lane changed its rules.
select partition, rules_seq, seq, watermark
from tocsin.rule_cutover
where lane = 'data'
order by partition, rules_seq
