-- Insert silences and the schedules of their ends, in key order. A second window of a maintenance at
-- the same time violates silence_window.
with item as (
    select *
    from unnest(%(ids)s::uuid[], %(matchers)s::text[], %(starts_at)s::timestamptz[], %(ends_at)s::timestamptz[],
                %(reasons)s::text[], %(created_by)s::text[], %(sources)s::text[], %(recurrences)s::jsonb[],
                %(schedules)s::jsonb[], %(payloads)s::jsonb[])
        as item (id, matcher, starts_at, ends_at, reason, created_by, source, recurrence, schedule, payload)
    order by item.id
),
ends as (
    insert into tocsin.schedule (id, owner, name, recurrence, type, payload, created_by, created_via, created_at,
                                 updated_at)
    select item.id, %(owner)s, item.id::text, item.schedule, %(type)s, item.payload, item.created_by, %(via)s, %(now)s,
           %(now)s
    from item
)
insert into tocsin.silence (id, matcher, starts_at, ends_at, reason, created_by, created_via, created_at, source,
                            recurrence)
select item.id, item.matcher, item.starts_at, item.ends_at, item.reason, item.created_by, %(via)s, %(now)s,
       item.source, item.recurrence
from item
