-- Start each action once per (action_rule, event): an event that comes again links nothing, so starts nothing (I7).
-- Returns what was started, in the order of the events; its first steps are appended in the same transaction.
with wanted as (
    select distinct on (d.id) d.*
    from unnest(%(ids)s::uuid[], %(names)s::text[], %(rules)s::text[], %(event_ids)s::uuid[],
                %(event_seqs)s::bigint[], %(documents)s::jsonb[], %(owners)s::text[], %(correlations)s::uuid[],
                %(alarms)s::uuid[], %(lineages)s::jsonb[], %(suppressed)s::text[])
        as d (id, name, action_rule, event_id, event_seq, document, owner, correlation_id, alarm_id, lineage, suppressed)
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
                               ended_at, error, correlation_id, alarm_id, lineage)
    select w.id, w.name, w.action_rule, w.event_id, w.event_seq, w.document, w.owner,
           case when w.suppressed is null then 'running' else 'skipped' end,
           case when w.suppressed is null then '{"0": {"attempt": 1, "state": "due"}}' else '{}' end::jsonb,
           tocsin.instant(), case when w.suppressed is not null then tocsin.instant() end, w.suppressed,
           w.correlation_id, w.alarm_id, array(select jsonb_array_elements_text(w.lineage))
    from wanted w
    join linked l on l.action_id = w.id
    returning id, name, owner, event_id, event_seq, correlation_id, error
)
select id, name, owner, event_id, correlation_id, error
from started
order by event_seq, name
