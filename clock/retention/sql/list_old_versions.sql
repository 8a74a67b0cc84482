-- A chunk of versions of documents, and whether they may be deleted: no remaining record or
-- datapoint was evaluated by them. The newest apply stays known. Locks nothing. Index: the keys of
-- rule_version and rule_cutover.
select v.kind, v.name, v.version::text,
       coalesce(v.until_seq < %(horizon)s, false)
       and v.until_seq < (select greatest(max(n.from_seq), max(n.until_seq)) from tocsin.rule_version n)
       and not exists (
           select from tocsin.rule_cutover w
           where w.lane = 'data' and w.rules_seq = v.until_seq and w.watermark >= %(datapoints_from)s)
from tocsin.rule_version v
where (v.kind, v.name, v.version) > ((%(after)s::text[])[1], (%(after)s::text[])[2], (%(after)s::text[])[3]::integer)
order by v.kind, v.name, v.version
limit %(limit)s
