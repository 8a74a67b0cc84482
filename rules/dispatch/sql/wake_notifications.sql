-- Link events to the notification runs of their alarms, and make the steps due that rest, in key order
-- of their runs. A step that gathers changes is woken by its timer, unless a suppression has ended. A
-- step that a worker performs now is marked with the event (`seq`), so that it is performed again. A held
-- step of another run is woken by the end of a suppression (`remind`). Returns the steps that are due.
with item as (
    select *
    from unnest(%(ids)s::uuid[], %(rules)s::text[], %(event_ids)s::uuid[], %(seqs)s::bigint[], %(alarms)s::uuid[],
                %(reminds)s::text[])
        as item (action_id, action_rule, event_id, event_seq, alarm_id, remind)
),
linked as (
    insert into tocsin.action_event (action_rule, event_id, event_seq, action_id, alarm_id)
    select distinct on (i.action_rule, i.event_id) i.action_rule, i.event_id, i.event_seq, i.action_id, i.alarm_id
    from item i
    where i.action_rule like 'notify:%%' and i.alarm_id is not null
    order by i.action_rule, i.event_id
    on conflict do nothing
),
wanted as (
    select i.action_id, max(i.event_seq) as seq, max(i.remind) as remind from item i group by i.action_id
),
locked as (
    select a.id, a.name, a.owner, a.correlation_id, a.event_id, a.active, a.action_rule like 'notify:%%' as is_notification
    from tocsin.action a
    where a.id = any(%(ids)s::uuid[]) and a.state = 'running'
    order by a.id
    for update
),
entries as (
    select l.id, e.key as step, e.value as entry, l.is_notification, w.seq, w.remind,
           e.value ->> 'state' = 'waiting'
           and case when l.is_notification then coalesce(e.value ->> 'rest', 'gathering') <> 'gathering' or w.remind <> ''
                    else e.value ? 'held' and w.remind <> '' end as is_woken
    from locked l
    join wanted w on w.action_id = l.id
    cross join lateral jsonb_each(l.active) e
),
changed as (
    select e.id, e.step, e.is_woken,
           (e.entry - 'held' || case when e.is_woken then '{"state": "due"}' else '{}' end::jsonb)
           || case when e.is_notification then jsonb_build_object('seq', e.seq) else '{}' end
           || case when e.is_notification and e.remind <> '' then jsonb_build_object('remind', e.remind) else '{}' end as entry
    from entries e
    where e.is_woken or (e.is_notification and e.entry ->> 'state' = 'due')
),
moved as (
    update tocsin.action a
    set active = a.active || c.entries, version = a.version + 1, held_by = null
    from (select k.id, jsonb_object_agg(k.step, k.entry) as entries from changed k group by k.id) c
    where a.id = c.id
    returning a.id
)
select l.id, l.name, l.owner, l.correlation_id, l.event_id, c.step::integer, (c.entry ->> 'attempt')::integer
from changed c
join moved m on m.id = c.id
join locked l on l.id = c.id
where c.is_woken
order by c.id, c.step
