-- Mark waits as compared with the events before they began. The caller has locked their runs. Index:
-- action_wait's key.
update tocsin.action_wait w
set is_new = false
from unnest(%(ids)s::uuid[], %(steps)s::integer[], %(attempts)s::integer[]) as item (action_id, step, attempt)
where w.action_id = item.action_id and w.step = item.step and w.attempt = item.attempt
