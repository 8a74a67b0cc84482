-- The limit for waits: deletes timers, updates actions, appends steps, in one statement.
with due as materialized (
    select t.ctid, t.ref, t.key, t.fire_at
    from tocsin.timer t
    where t.kind = 'runbook-wait' and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s) and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
    for update skip locked
),
gone as (delete from tocsin.timer t using due where t.ctid = due.ctid),
actions as (
    update tocsin.action a set active = '{"0": {"attempt": 1, "state": "due"}}', version = a.version + 1
    from due d where a.id = d.ref::uuid
    returning a.id, a.name, a.owner
),
appended as (
    select tocsin.append('{}', array_agg(
        row(gen_random_uuid(), a.id, a.name, a.owner, 0, 1, 'due', a.id, a.id, '{}')::tocsin.step_input))
    from actions a
)
select count(*), max(fire_at), (array_agg(ref order by fire_at desc, ref desc, key desc))[1],
       (array_agg(key order by fire_at desc, ref desc, key desc))[1], (select * from appended)
from due
