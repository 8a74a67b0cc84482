-- Make steps due whose event has arrived, in key order of their runs. A step that no longer waits
-- for this attempt (its timeout came first, or it was cancelled) is left alone and not returned.
-- Its timer finds it due and does nothing.
with met as (
    select item.action_id, item.step, item.attempt, item.event_seq
    from unnest(%(ids)s::uuid[], %(steps)s::integer[], %(attempts)s::integer[], %(seqs)s::bigint[])
        as item (action_id, step, attempt, event_seq)
),
locked as (
    select a.id, a.name, a.owner, a.correlation_id, a.event_id, a.active
    from tocsin.action a
    where a.id = any(%(ids)s::uuid[]) and a.state = 'running'
    order by a.id
    for update
),
counted as (
    select l.*, m.step, m.attempt,
           l.active -> m.step::text || jsonb_build_object('state', 'due', 'met', m.event_seq) as entry
    from met m
    join locked l on l.id = m.action_id
    where l.active -> m.step::text ->> 'state' = 'waiting'
      and (l.active -> m.step::text ->> 'attempt')::integer = m.attempt
),
moved as (
    update tocsin.action a
    set active = a.active || c.entries, version = a.version + 1
    from (select one.id, jsonb_object_agg(one.step::text, one.entry) as entries from counted one group by one.id) c
    where a.id = c.id
    returning a.id
)
select c.id, c.name, c.owner, c.correlation_id, c.event_id, c.step, c.attempt
from counted c
join moved m on m.id = c.id
order by c.id, c.step
