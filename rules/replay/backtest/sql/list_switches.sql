-- Where every lane stood at every apply.
select lane, partition, rules_seq, seq, complete_until
from tocsin.rule_switch
order by lane, partition, rules_seq
