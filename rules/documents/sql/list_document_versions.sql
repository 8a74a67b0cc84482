-- The newest versions of one document, with the apply that stored each. Its instant and its author are null
-- if retention has removed the event. Index: the primary key.
select v.version, v.from_seq as seq, v.until_seq, applied.ts as applied_at,
       applied.payload ->> 'who' as applied_by, applied.payload ->> 'via' as via, v.document
from tocsin.rule_version v
left join (
    select seq, ts, payload from tocsin.event where seq >= (select h.horizon from tocsin.log_head h)
    union all
    select seq, ts, payload from tocsin.event_kept where seq < (select h.horizon from tocsin.log_head h)
) applied on applied.seq = v.from_seq
where v.kind = %(kind)s and v.name = %(name)s
order by v.version desc
limit %(most)s
