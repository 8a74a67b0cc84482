-- Apply fired waits to their runs. The last statement before COMMIT. Locks the runs in key order. A
-- fire counts only if its step still waits for this attempt (a report: if the step is active). A
-- run that was cancelled, has ended or has moved on ignores it. A report that came too late is
-- appended and kept as an answer. A group with `overlap: queue` whose rule and group have an active run
-- is queued: it goes on gathering until that run has ended. Index: action_active.
with fired as (
    select f.ref::uuid as action_id, f.key, f.payload, f.position,
           case when f.key = 'group' then '0' else f.payload ->> 'step' end as step
    from unnest(%(refs)s::text[], %(keys)s::text[], %(payloads)s::jsonb[]) with ordinality as f (ref, key, payload, position)
),
locked as (
    select a.id, a.name, a.owner, a.correlation_id, a.event_id, a.state, a.active, a.action_rule, a.group_key
    from tocsin.action a
    where a.id = any(%(ids)s::uuid[])
    order by a.id
    for update
),
evaluated as (
    select l.*, f.step, f.payload, f.position, l.active -> f.step as entry,
           case
               when f.key = 'group' then
                   case when l.state <> 'gathering' then null
                        when f.payload ? 'queue' and exists (
                            select from tocsin.action o
                            where o.action_rule = l.action_rule and o.group_key = l.group_key and o.id <> l.id
                              and o.state in ('queued', 'running')) then 'queued'
                        else 'due' end
               when not f.payload ? 'report' then
                   case when l.state = 'running' and l.active -> f.step ->> 'state' = 'waiting'
                             and l.active -> f.step ->> 'attempt' = f.payload ->> 'attempt' then 'due' end
               when l.state = 'running' and l.active -> f.step ->> 'state' in ('due', 'waiting') then
                   case when f.payload -> 'report' ->> 'state' = 'completed'
                             or coalesce(f.payload -> 'report' ->> 'attempt', l.active -> f.step ->> 'attempt')
                                = l.active -> f.step ->> 'attempt' then 'due' end
               else 'late'
           end as effect
    from fired f
    join locked l on l.id = f.action_id
),
-- If a batch has a report and a deadline of one step, the report counts.
counted as (
    select distinct on (e.id, e.step) e.*,
           coalesce(e.entry, '{"attempt": 1}') || (e.payload - 'step' - 'queue') || '{"state": "due"}' as due_entry
    from evaluated e
    where e.effect is not null
    order by e.id, e.step, e.payload ? 'report' desc
),
moved as (
    update tocsin.action a
    set state = case when c.is_queued then 'queued' when a.state = 'gathering' then 'running' else a.state end,
        active = a.active || c.entries,
        answers = a.answers || c.late,
        version = a.version + 1
    from (
        select k.id, bool_or(k.effect = 'queued') as is_queued,
               coalesce(jsonb_object_agg(k.step, k.due_entry) filter (where k.effect = 'due'), '{}') as entries,
               coalesce(jsonb_object_agg(k.step, k.payload -> 'report' || '{"late": true}')
                        filter (where k.effect = 'late'), '{}') as late
        from counted k
        group by k.id
    ) c
    where a.id = c.id
    returning a.id
)
select tocsin.append(
    '{}',
    coalesce(array_agg(
        row(gen_random_uuid(), c.id, c.name, c.owner, c.step::integer,
            coalesce(c.due_entry ->> 'attempt', '1')::integer,
            case c.effect when 'due' then 'due' when 'queued' then 'waiting' else c.payload -> 'report' ->> 'state' end,
            c.correlation_id, c.event_id,
            case
                when c.effect = 'late' then c.payload -> 'report' || '{"late": true}'
                when c.payload ? 'report' then '{"reported": true}'
                when c.effect = 'queued' then '{"reason": "queued: another run of the group is active"}'
                else c.payload - 'step' - 'attempt' - 'queue'
            end)::tocsin.step_input
        order by c.position), '{}'),
    %(epoch)s)
from counted c
join moved m on m.id = c.id
