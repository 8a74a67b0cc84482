-- The limit: re-arms a batch of ticks and inserts their events in one statement, addressed by ctid;
-- with the same tables, columns, indexes and partitions as Tocsin, synchronous_commit on; without
-- recurrences, policies and fencing.
with due as materialized (
    select t.ctid, t.ref, t.fire_at, t.nominal_at
    from tocsin.timer t
    where t.kind = 'schedule-tick' and t.parked_at is null
      and (t.fire_at, t.ref) > (%(mark)s, %(mark_ref)s) and t.fire_at <= %(now)s
    order by t.fire_at, t.ref
    limit %(limit)s
    for update skip locked
), moved as (
    update tocsin.timer t
    set fire_at = due.fire_at + interval '1 hour', nominal_at = due.nominal_at + interval '1 hour',
        last_nominal_at = due.nominal_at
    from due where t.ctid = due.ctid
), inserted as (
    insert into tocsin.event (seq, id, ts, recorded_at, origin, type, schedule, owner, fire_at, correlation_id, payload,
                              epoch)
    select %(base)s + row_number() over (), d.id, d.nominal_at, clock_timestamp(), 'scheduled', 'schedule-fired',
           'bench', '', d.fire_at, d.id, '{}', 1
    from (select due.*, gen_random_uuid() as id from due) d
)
select count(*), max(fire_at), (array_agg(ref order by fire_at desc, ref desc))[1] from due
