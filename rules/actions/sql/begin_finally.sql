-- Make the first step of `finally` due, of runs that cancel_actions has just locked and left running.
update tocsin.action a
set active = jsonb_build_object(item.step::text, '{"attempt": 1, "state": "due"}'::jsonb)
from unnest(%(ids)s::uuid[], %(steps)s::integer[]) as item (id, step)
where a.id = item.id
