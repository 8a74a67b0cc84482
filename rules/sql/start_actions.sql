-- Start each action once per (action_rule, event): a redelivered message inserts nothing (I7). The first step of
-- what was inserted is appended as due, in the same transaction; nothing is appended when all lost. The conflict has
-- no target: the id follows from rule and event, and a race would otherwise be an error of whichever index is first.
with started as (
    insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, owner, state, started_at,
                               correlation_id)
    select d.id, d.name, d.action_rule, d.event_id, d.event_seq, d.document, d.owner, 'running', tocsin.instant(),
           d.correlation_id
    from unnest(%(ids)s::uuid[], %(names)s::text[], %(rules)s::text[], %(event_ids)s::uuid[],
                %(event_seqs)s::bigint[], %(documents)s::jsonb[], %(owners)s::text[], %(correlations)s::uuid[])
        as d (id, name, action_rule, event_id, event_seq, document, owner, correlation_id)
    order by d.action_rule, d.event_id
    on conflict do nothing
    returning id, name, owner, event_id, event_seq, correlation_id
)
select count(*), case when count(*) > 0 then tocsin.append(
    '{}',
    array_agg(
        row(gen_random_uuid(), s.id, s.name, s.owner, 0, 1, 'due', s.correlation_id, s.event_id,
            '{}')::tocsin.step_input
        order by s.event_seq, s.name))
    end
from started s
