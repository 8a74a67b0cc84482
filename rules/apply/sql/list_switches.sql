-- Every place at which the data lane changed its rules.
select partition, rules_seq, seq, complete_until
from tocsin.rule_switch
where lane = 'data'
order by partition, rules_seq
