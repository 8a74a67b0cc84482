-- Move each tick to its next occurrence (instants in microseconds). The rows are locked by
-- lock_due_ticks, so their ctids are stable (a join by id would read the whole table when it is
-- small).
update tocsin.timer t
set fire_at = timestamptz 'epoch' + d.next_fire_at * interval '1 microsecond',
    nominal_at = timestamptz 'epoch' + d.next_at * interval '1 microsecond',
    identity = d.identity,
    identity_at = timestamptz 'epoch' + d.next_at * interval '1 microsecond',
    last_nominal_at = coalesce(timestamptz 'epoch' + d.done_until * interval '1 microsecond', t.last_nominal_at),
    last_identity = case when d.done_until is null then t.last_identity else d.done_identity end,
    attempts = 0, last_error = null
from unnest(%(ctids)s::tid[], %(next_fire_at)s::bigint[], %(next_at)s::bigint[], %(identities)s::text[],
            %(done_until)s::bigint[], %(done_identities)s::text[])
    as d (row_id, next_fire_at, next_at, identity, done_until, done_identity)
where t.ctid = d.row_id
