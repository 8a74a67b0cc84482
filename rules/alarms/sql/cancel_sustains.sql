-- Deletes sustains in key order, and returns how many existed, without snoozes. Fewer than given:
-- the clock was faster, and the caller plans again.
with locked as (
    select t.ref, t.key
    from unnest(%(refs)s::text[], %(keys)s::text[]) as item (ref, key)
    join tocsin.timer t on t.kind = 'for-sustain' and t.ref = item.ref and t.key = item.key
    order by t.ref, t.key
    for update of t
),
deleted as (
    delete from tocsin.timer t using locked l
    where t.kind = 'for-sustain' and t.ref = l.ref and t.key = l.key
    returning t.key
)
select count(*) filter (where key <> 'snooze') from deleted
