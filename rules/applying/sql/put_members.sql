-- Members as the documents name them. Under the log's lock.
insert into tocsin.system_member as m (system, owner, key, type, required, covered)
select g.*
from unnest(%(systems)s::text[], %(owners)s::text[], %(keys)s::text[], %(types)s::text[], %(required)s::boolean[],
            %(covered)s::boolean[]) as g (system, owner, key, type, required, covered)
order by g.system, g.owner, g.key, g.type
on conflict (system, owner, key, type) do update set required = excluded.required, covered = excluded.covered
