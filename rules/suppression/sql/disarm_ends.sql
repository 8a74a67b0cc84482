-- Remove the ticks that would end silences, in key order. Waits for a fire in progress, which wins.
with armed as (
    select t.ref
    from tocsin.timer t
    where t.kind = 'schedule-tick' and t.ref = any(%(refs)s::text[]) and t.key = ''
    order by t.ref
    for update
)
delete from tocsin.timer t
using armed
where t.kind = 'schedule-tick' and t.ref = armed.ref and t.key = ''
