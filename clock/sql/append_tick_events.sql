-- The last statement before COMMIT: all events of the batch through tocsin.append, which proves the epoch.
-- A fire takes type, action, owner and payload from its schedule; a missed record brings its own.
select tocsin.append(
    coalesce(array_agg(
        row(e.id, e.ts, e.origin, coalesce(e.type, s.type), s.name, '',
            case when e.origin = 'scheduled' then s.action end, s.owner, e.fire_at, null, null, null,
            e.id, coalesce(e.payload::jsonb, s.payload))::tocsin.event_input
        order by e.position), '{}'),
    '{}',
    %(epoch)s)
from unnest(%(ids)s::uuid[], %(schedules)s::uuid[], %(ts)s::timestamptz[], %(fire_at)s::timestamptz[],
            %(origins)s::text[], %(types)s::text[], %(payloads)s::text[])
    with ordinality as e (id, schedule_id, ts, fire_at, origin, type, payload, position)
join tocsin.schedule s on s.id = e.schedule_id
