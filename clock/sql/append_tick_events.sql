-- Append all events of the batch through tocsin.append, which proves the epoch. The last statement
-- before COMMIT. A fire takes type, action, owner and payload from its schedule; a missed record
-- brings its own payload.
select tocsin.append(
    coalesce(array_agg(
        row(e.id, timestamptz 'epoch' + e.ts * interval '1 microsecond',
            case when e.missed is null then 'scheduled' else 'derived' end,
            case when e.missed is null then s.type else 'schedule-missed' end,
            s.name, '', case when e.missed is null then s.action end, s.owner,
            timestamptz 'epoch' + e.fire_at * interval '1 microsecond', null, null, null, e.id,
            case when e.missed is null then s.payload else e.missed::jsonb end)::tocsin.event_input
        order by e.position), '{}'),
    '{}',
    %(epoch)s)
from unnest(%(ids)s::uuid[], %(schedules)s::uuid[], %(ts)s::bigint[], %(fire_at)s::bigint[], %(missed)s::text[])
    with ordinality as e (id, schedule_id, ts, fire_at, missed, position)
-- Looked up row by row, as in lock_due_ticks.
cross join lateral (select * from tocsin.schedule one where one.id = e.schedule_id offset 0) s
