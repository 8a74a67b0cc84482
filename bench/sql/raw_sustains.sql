-- The limit for sustains: deletes timers, updates states and alarms, appends events, in one
-- statement.
with due as materialized (
    select t.ctid, t.ref, t.key, t.fire_at
    from tocsin.timer t
    where t.kind = 'for-sustain' and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s) and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
    for update skip locked
),
gone as (delete from tocsin.timer t using due where t.ctid = due.ctid),
alarms as (
    update tocsin.alarm a set state = 'open', opened_at = d.fire_at, version = a.version + 1
    from due d where a.id = d.ref::uuid
    returning a.id, a.event_rule, a.owner, a.opened_at
),
states as (
    update tocsin.rule_state s set phase = 'open', state = s.state || '{"phase": "open"}', version = s.version + 1
    from alarms a where s.event_rule = a.event_rule and s.owner = a.owner
),
appended as (
    select tocsin.append(array_agg(
        row(gen_random_uuid(), a.opened_at, 'derived', 'alarm-opened', null, a.event_rule, null, a.owner, null, a.id, 4,
            null, a.id, '{"message": "hot"}')::tocsin.event_input))
    from alarms a
)
select count(*), max(fire_at), (array_agg(ref order by fire_at desc, ref desc, key desc))[1],
       (array_agg(key order by fire_at desc, ref desc, key desc))[1], (select * from appended)
from due
