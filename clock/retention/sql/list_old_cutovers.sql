-- A chunk of cutovers, and whether they may be deleted: a later one of the same partition also lies
-- before all remaining records. Locks nothing. Index: the key of rule_cutover.
select w.lane, w.partition::text, w.rules_seq::text,
       exists (
           select from tocsin.rule_cutover n
           where n.lane = w.lane and n.partition = w.partition and n.rules_seq > w.rules_seq and n.rules_seq < %(horizon)s
             and n.watermark < %(datapoints_from)s)
from tocsin.rule_cutover w
where (w.lane, w.partition, w.rules_seq)
      > ((%(after)s::text[])[1], (%(after)s::text[])[2]::integer, (%(after)s::text[])[3]::bigint)
order by w.lane, w.partition, w.rules_seq
limit %(limit)s
