-- Insert one-shot schedules at one instant, or `step_us` microseconds apart.
insert into tocsin.schedule (id, name, recurrence, created_by, created_via, created_at, updated_at)
select md5('shot' || n)::uuid, 'shot-' || n,
       jsonb_build_object('every', '1h', 'anchor', '2020-01-01T00:00:00Z', 'tz', 'UTC', 'dst_gap', 'forward',
                          'dst_fold', 'first'),
       'bench', 'bench', tocsin.instant(), tocsin.instant()
from generate_series(1, %(count)s::integer) n
