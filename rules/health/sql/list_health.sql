-- Every system with its health, the members that are not ok, the worst and the required first, and the instant of the first fact
-- that waits to be decided. Locks nothing.
select h.system, h.health, h.reason, h.since,
       (select count(*) from tocsin.system_member m where m.system = h.system) as members,
       (select min(f.at) from tocsin.member_observation f
        where f.owner in (select m.owner from tocsin.system_member m where m.system = h.system)) as waiting_since,
       (select coalesce(jsonb_agg(jsonb_build_object('owner', m.owner, 'key', m.key, 'type', m.type,
                                                     'required', m.required, 'condition', m.condition)
                                  order by array_position(array['outage', 'stale', 'degraded', 'no-data', 'uncovered'],
                                                          m.condition), not m.required, m.owner, m.key), '[]')
        from tocsin.system_member m
        where m.system = h.system and m.condition <> 'ok'
       ) as ill
from tocsin.system_health h
order by h.system
