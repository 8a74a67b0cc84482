-- Every system with its health, its members that are not ok, the worst and required ones first, and
-- the instant of its first undecided observation. Locks nothing.
select h.system, h.health, h.reason, h.since,
       (select count(*) from tocsin.system_member m where m.system = h.system) as members,
       (select min(o.at) from tocsin.member_observation o
        where o.owner in (select m.owner from tocsin.system_member m where m.system = h.system)) as waiting_since,
       (select coalesce(jsonb_agg(jsonb_build_object('owner', m.owner, 'key', m.key, 'type', m.type,
                                                     'required', m.required, 'condition', m.condition)
                                  order by array_position(array['outage', 'stale', 'degraded', 'no-data', 'uncovered'],
                                                          m.condition), not m.required, m.owner, m.key), '[]')
        from tocsin.system_member m
        where m.system = h.system and m.condition <> 'ok'
       ) as not_ok
from tocsin.system_health h
order by h.system
