-- Documents in force, optionally of one kind and name, with the apply that stored them. Its instant and its
-- author are null if retention has removed the event. Index: rule_version_current.
select v.kind, v.name, v.version, v.from_seq as seq, applied.ts as applied_at,
       applied.payload ->> 'who' as applied_by, applied.payload ->> 'via' as via, v.document
from tocsin.rule_version v
left join (
    select seq, ts, payload from tocsin.event where seq >= (select h.horizon from tocsin.log_head h)
    union all
    select seq, ts, payload from tocsin.event_kept where seq < (select h.horizon from tocsin.log_head h)
) applied on applied.seq = v.from_seq
where v.until_seq is null
  and (%(kind)s::text is null or v.kind = %(kind)s)
  and (%(name)s::text is null or v.name = %(name)s)
order by array_position(%(kinds)s::text[], v.kind), v.name
