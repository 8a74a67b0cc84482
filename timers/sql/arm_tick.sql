-- Arm the one tick of a schedule, moved in place if it exists. Waits for a fire in progress, whose
-- result (last_nominal_at) is kept. `seen_done_until` is the last_nominal_at that the caller has
-- read: if a fire has changed it since, this returns no row, and the caller starts again.
insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, last_nominal_at, last_identity, generation,
                              identity, identity_at)
values ('schedule-tick', %(ref)s, '', %(fire_at)s, %(nominal_at)s, %(done_until)s, %(done_identity)s,
        %(generation)s, %(identity)s, %(nominal_at)s)
on conflict on constraint timer_pkey do update
    set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, generation = excluded.generation,
        last_identity = excluded.last_identity,
        identity = excluded.identity, identity_at = excluded.identity_at, attempts = 0, last_error = null, parked_at = null
    where t.last_nominal_at is not distinct from %(seen_done_until)s::timestamptz
returning t.ref
