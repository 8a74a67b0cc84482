-- Stores the alarms of a batch, resolved ones first: an (event_rule, owner, instance) has at most one
-- that is pending or open.
insert into tocsin.alarm as a (id, event_rule, owner, instance, state, severity, since, opened_at, resolved_at, resolved_reason,
                               payload, source_event_id, correlation_id)
select item.*
from unnest(%(ids)s::uuid[], %(rules)s::text[], %(owners)s::text[], %(instances)s::text[], %(states)s::text[], %(severities)s::smallint[],
            %(since)s::timestamptz[], %(opened_at)s::timestamptz[], %(resolved_at)s::timestamptz[],
            %(reasons)s::text[], %(payloads)s::jsonb[], %(source_event_ids)s::uuid[], %(correlation_ids)s::uuid[])
    as item (id, event_rule, owner, instance, state, severity, since, opened_at, resolved_at, resolved_reason, payload,
          source_event_id, correlation_id)
order by item.state <> 'resolved', item.id
on conflict (id) do update
    set state = excluded.state, opened_at = coalesce(a.opened_at, excluded.opened_at),
        resolved_at = excluded.resolved_at, resolved_reason = excluded.resolved_reason,
        severity = excluded.severity, payload = excluded.payload, version = a.version + 1
