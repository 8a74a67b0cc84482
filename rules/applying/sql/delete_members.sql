-- Members that are none any more. Under the log's lock.
delete from tocsin.system_member m
where not exists (
    select from unnest(%(systems)s::text[], %(owners)s::text[], %(keys)s::text[], %(types)s::text[])
        as g (system, owner, key, type)
    where g.system = m.system and g.owner = m.owner and g.key = m.key and g.type = m.type)
