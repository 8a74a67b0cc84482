-- Append events given as columns, in order. The log is locked from here until COMMIT.
select tocsin.append(
    coalesce(array_agg(
        row(e.id, e.ts, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, null, e.alarm_id, e.severity,
            e.source_event_id, coalesce(e.correlation_id, e.id), e.payload)::tocsin.event_input
        order by e.position), '{}'),
    '{}',
    %(epoch)s)
from unnest(%(id)s::uuid[], %(ts)s::timestamptz[], %(origin)s::text[], %(type)s::text[], %(schedule)s::text[],
            %(rule)s::text[], %(action)s::text[], %(owner)s::text[], %(alarm_id)s::uuid[], %(severity)s::smallint[],
            %(source_event_id)s::uuid[], %(correlation_id)s::uuid[], %(payload)s::jsonb[])
    with ordinality as e (id, ts, origin, type, schedule, rule, action, owner, alarm_id, severity, source_event_id,
                          correlation_id, payload, position)
