-- Every system with its health and the members that are not ok, the worst and the required first. Locks nothing.
select h.system, h.health, h.reason, h.since,
       (select count(*) from tocsin.system_member m where m.system = h.system) as members,
       (select coalesce(jsonb_agg(jsonb_build_object('owner', m.owner, 'key', m.key, 'type', m.type,
                                                     'required', m.required, 'condition', m.condition)
                                  order by array_position(array['outage', 'stale', 'degraded', 'no-data', 'uncovered'],
                                                          m.condition), not m.required, m.owner, m.key), '[]')
        from tocsin.system_member m
        where m.system = h.system and m.condition <> 'ok'
          and not (m.key = '' and exists (
              select from tocsin.system_member seen
              where seen.system = m.system and seen.owner = m.owner and seen.type = m.type and seen.key <> ''))
       ) as ill
from tocsin.system_health h
order by h.system
