-- A page of the places at which lanes changed their rules, and whether they may go: a later one of the same partition also lies before
-- everything that is left. Locks nothing. Index: rule_cutover's key.
select w.lane, w.partition::text, w.rules_seq::text,
       exists (
           select from tocsin.rule_cutover n
           where n.lane = w.lane and n.partition = w.partition and n.rules_seq > w.rules_seq and n.rules_seq < %(horizon)s
             and n.watermark < %(datapoints_from)s)
from tocsin.rule_cutover w
where (w.lane, w.partition, w.rules_seq)
      > ((%(after)s::text[])[1], (%(after)s::text[])[2]::integer, (%(after)s::text[])[3]::bigint)
order by w.lane, w.partition, w.rules_seq
limit %(most)s
