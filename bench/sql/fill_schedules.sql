-- Insert schedules. Their recurrences come from a list, in turn.
insert into tocsin.schedule (id, name, recurrence, created_by, created_via, created_at, updated_at)
select md5('bench' || n)::uuid, 'bench-' || n,
       (%(recurrences)s::jsonb[])[1 + n %% cardinality(%(recurrences)s::jsonb[])],
       'bench', 'bench', %(at)s, %(at)s
from generate_series(1, %(count)s::integer) n
