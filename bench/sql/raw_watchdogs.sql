-- The limit for watchdogs: deletes timers, updates current values, appends calculated datapoints
-- with the payload of a fire, in one statement.
with due as materialized (
    select t.ctid, t.ref, t.key, t.fire_at, t.payload ->> 'owner' as owner
    from tocsin.timer t
    where t.kind = 'watchdog' and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s) and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
    for update skip locked
),
gone as (delete from tocsin.timer t using due where t.ctid = due.ctid),
series as (
    update tocsin.current_value c set freshness = 'stale', stale_since = d.fire_at, version = c.version + 1
    from due d where c.owner = d.owner and c.key = d.key
    returning c.owner, c.key, c.stale_since, c.value, c.labels, c.ts, c.arrived_at
),
appended as (
    select tocsin.append(calculated => array_agg(
        row(gen_random_uuid(), s.owner, s.key, s.stale_since, 'stale', null,
            jsonb_build_object('value', s.value, 'labels', s.labels, 'ts', s.ts, 'arrived_at', s.arrived_at,
                'age_s', extract(epoch from s.stale_since - s.arrived_at)::float8))::tocsin.calculated_input))
    from series s
)
select count(*), max(fire_at), (array_agg(ref order by fire_at desc, ref desc, key desc))[1],
       (array_agg(key order by fire_at desc, ref desc, key desc))[1], (select * from appended)
from due
