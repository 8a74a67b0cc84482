-- The seq of the newest change of the rule set, who made it and when; seq 0 before the first apply.
select coalesce(max(greatest(v.from_seq, v.until_seq)), 0)
from tocsin.rule_version v
