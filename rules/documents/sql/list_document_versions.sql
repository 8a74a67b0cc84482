-- The versions of one document, the newest first, with the applies that stored and ended each. Instants and
-- authors are null if retention has removed the events. Index: rule_version's key.
select v.kind, v.name, v.version, v.from_seq as seq, v.until_seq, v.document,
       stored.ts as applied_at, stored.payload ->> 'who' as applied_by, stored.payload ->> 'via' as via,
       ended.ts as ended_at, ended.payload ->> 'who' as ended_by
from tocsin.rule_version v
left join (
    select seq, ts, payload from tocsin.event where seq >= (select h.horizon from tocsin.log_head h)
    union all
    select seq, ts, payload from tocsin.event_kept where seq < (select h.horizon from tocsin.log_head h)
) stored on stored.seq = v.from_seq
left join (
    select seq, ts, payload from tocsin.event where seq >= (select h.horizon from tocsin.log_head h)
    union all
    select seq, ts, payload from tocsin.event_kept where seq < (select h.horizon from tocsin.log_head h)
) ended on ended.seq = v.until_seq
where v.kind = %(kind)s and v.name = %(name)s and (%(before)s::integer is null or v.version < %(before)s)
order by v.version desc
limit %(limit)s
