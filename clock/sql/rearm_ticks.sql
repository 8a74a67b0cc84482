-- Move each tick to its next occurrence. lock_due_ticks has locked the rows, so their ctids cannot
-- change, and the join uses them: a join by id would read the whole table while it is small.
-- Instants are microseconds since the epoch. `done_until` is the last occurrence that has fired or
-- was missed, `done_identity` its wall time if it is identified by one; null leaves both as they
-- are. `identity` is that of the occurrence at `next_at` (decision 0015).
update tocsin.timer t
set fire_at = timestamptz 'epoch' + next_tick.next_fire_at * interval '1 microsecond',
    nominal_at = timestamptz 'epoch' + next_tick.next_at * interval '1 microsecond',
    identity = next_tick.identity,
    identity_at = timestamptz 'epoch' + next_tick.next_at * interval '1 microsecond',
    last_nominal_at = coalesce(timestamptz 'epoch' + next_tick.done_until * interval '1 microsecond', t.last_nominal_at),
    last_identity = case when next_tick.done_until is null then t.last_identity else next_tick.done_identity end,
    attempts = 0, last_error = null
from unnest(%(ctids)s::tid[], %(next_fire_at)s::bigint[], %(next_at)s::bigint[], %(identities)s::text[],
            %(done_until)s::bigint[], %(done_identities)s::text[])
    as next_tick (ctid, next_fire_at, next_at, identity, done_until, done_identity)
where t.ctid = next_tick.ctid
