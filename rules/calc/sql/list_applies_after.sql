-- The applies behind a seq in order, each with the most advanced watermark of the data lane that it
-- found. Index: rule_version_from, rule_version_until, the keys of rule_cutover and event.
select a.seq,
       (select max(c.watermark) from tocsin.rule_cutover c where c.lane = 'data' and c.rules_seq = a.seq),
       coalesce((select e.ts from tocsin.event e where e.seq = a.seq), 'epoch')
from (
    select from_seq as seq from tocsin.rule_version where from_seq > %(after)s
    union
    select until_seq from tocsin.rule_version where until_seq > %(after)s
) a
order by a.seq
