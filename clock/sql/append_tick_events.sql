-- Append all events of a batch of ticks. The last statement before COMMIT: tocsin.append rejects
-- the batch if its epoch is not the current one. An occurrence that fires (`missed` is null) takes
-- type, action, owner and payload from its schedule. A `schedule-missed` event has `missed` as its
-- payload.
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
-- Looked up row by row (`offset 0`), for the reason that lock_due_ticks gives.
cross join lateral (select * from tocsin.schedule where schedule.id = e.schedule_id offset 0) s
