-- Start each action once per (action_rule, event): an event that is dispatched again is linked
-- already, and starts nothing (I7). An event that joins a gathering run is linked to it and starts
-- nothing either. Returns the new runs, in the order of the events; the caller appends their first
-- steps in the same transaction.
with wanted as (
    select distinct on (item.action_rule, item.event_id) item.*
    from unnest(%(ids)s::uuid[], %(names)s::text[], %(rules)s::text[], %(groups)s::text[], %(states)s::text[],
                %(joins)s::boolean[], %(reasons)s::text[], %(event_ids)s::uuid[], %(event_seqs)s::bigint[],
                %(documents)s::jsonb[], %(owners)s::text[], %(correlations)s::uuid[], %(alarms)s::uuid[],
                %(lineages)s::jsonb[], %(ends_with)s::jsonb[], %(actives)s::jsonb[])
        as item (id, name, action_rule, group_key, state, joins, reason, event_id, event_seq, document, owner,
              correlation_id, alarm_id, lineage, ends_with, active)
    order by item.action_rule, item.event_id
),
linked as (
    insert into tocsin.action_event (action_rule, event_id, event_seq, action_id, alarm_id)
    select w.action_rule, w.event_id, w.event_seq, w.id, w.alarm_id
    from wanted w
    order by w.action_rule, w.event_id
    on conflict do nothing
    returning action_rule, event_id
),
started as (
    insert into tocsin.action (id, name, action_rule, group_key, event_id, event_seq, document, owner, state, active,
                               started_at, ended_at, error, correlation_id, alarm_id, lineage, ends_with, priority)
    select w.id, w.name, w.action_rule, w.group_key, w.event_id, w.event_seq, w.document, w.owner, w.state,
           w.active,
           tocsin.instant(), case w.state when 'skipped' then tocsin.instant() end, w.reason,
           w.correlation_id, w.alarm_id, array(select jsonb_array_elements_text(w.lineage)),
           array(select jsonb_array_elements_text(w.ends_with)), nullif(w.document ->> 'priority', 'normal')
    from wanted w
    join linked l on l.action_rule = w.action_rule and l.event_id = w.event_id
    where not w.joins
    returning id, name, owner, event_id, event_seq, correlation_id, state, error, active
)
select id, name, owner, event_id, correlation_id, state, error, active -> '0' ->> 'state' = 'due'
from started
order by event_seq, name
