-- Steps that wait for an event, written after the append of the same transaction: events that are
-- committed after this transaction count, earlier ones do not. This transaction holds the lock of
-- the log until it commits.
insert into tocsin.action_wait (action_id, step, attempt, condition, after_seq)
select %(id)s, d.step, d.attempt, d.condition, (select max(c.last_seq) from tocsin.log_commit c)
from unnest(%(steps)s::integer[], %(attempts)s::integer[], %(conditions)s::text[]) as d (step, attempt, condition)
on conflict (action_id, step) do update
    set attempt = excluded.attempt, condition = excluded.condition, after_seq = excluded.after_seq
