-- Series that are members by their type, seen for the first time. Locks nothing that exists.
insert into tocsin.system_member (system, owner, key, type, required, covered)
select g.*
from unnest(%(systems)s::text[], %(owners)s::text[], %(keys)s::text[], %(types)s::text[], %(required)s::boolean[],
            %(covered)s::boolean[]) as g (system, owner, key, type, required, covered)
where exists (select from tocsin.system_health h where h.system = g.system)
order by g.system, g.owner, g.key, g.type
on conflict do nothing
