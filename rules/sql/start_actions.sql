-- Start each action once per (action_rule, event): an event that comes again links nothing, so starts nothing (I7).
-- Returns what was started, in the order of the events; its first steps are appended in the same transaction.
with wanted as (
    select distinct on (d.id) d.*
    from unnest(%(ids)s::uuid[], %(names)s::text[], %(rules)s::text[], %(event_ids)s::uuid[],
                %(event_seqs)s::bigint[], %(documents)s::jsonb[], %(owners)s::text[], %(correlations)s::uuid[])
        as d (id, name, action_rule, event_id, event_seq, document, owner, correlation_id)
),
linked as (
    insert into tocsin.action_event (action_rule, event_id, event_seq, action_id)
    select w.action_rule, w.event_id, w.event_seq, w.id
    from wanted w
    order by w.action_rule, w.event_id
    on conflict do nothing
    returning action_id
),
started as (
    insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, owner, state, active, started_at,
                               correlation_id)
    select w.id, w.name, w.action_rule, w.event_id, w.event_seq, w.document, w.owner, 'running',
           '{"0": {"attempt": 1, "state": "due"}}', tocsin.instant(), w.correlation_id
    from wanted w
    join linked l on l.action_id = w.id
    returning id, name, owner, event_id, event_seq, correlation_id
)
select id, name, owner, event_id, correlation_id
from started
order by event_seq, name
