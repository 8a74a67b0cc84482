-- Delete event waits that an event has met, whether or not it woke the step: each wait counts once.
-- Index: action_wait's key.
delete from tocsin.action_wait w
using unnest(%(ids)s::uuid[], %(steps)s::integer[], %(attempts)s::integer[]) as item (action_id, step, attempt)
where w.action_id = item.action_id and w.step = item.step and w.attempt = item.attempt
