-- Insert the waits of steps for an event, after the append of the same transaction, which keeps the
-- log locked until it commits. Events that are committed later are matched as the lane reads them.
-- Events since the one that started the run are matched once, when the lane finds the new wait.
insert into tocsin.action_wait (action_id, step, attempt, condition, after_seq)
select %(id)s, item.step, item.attempt, item.condition,
       (select max(c.last_seq) from tocsin.log_commit c)
from unnest(%(steps)s::integer[], %(attempts)s::integer[], %(conditions)s::text[]) as item (step, attempt, condition)
on conflict (action_id, step) do update
    set attempt = excluded.attempt, condition = excluded.condition, after_seq = excluded.after_seq,
        is_new = true
