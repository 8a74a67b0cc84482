-- Schedules of some owners whose name or owner has a text, among the first ones by owner and name: the walk is
-- bounded where the text is rare. Those of Tocsin itself are left out. Locks nothing. Index: schedule_owner_name_key.
select s.id, s.owner, s.name, s.status
from (
    select n.id, n.owner, n.name, n.status
    from tocsin.schedule n
    where n.owner not like 'tocsin:%%'
    order by n.owner, n.name
    limit %(within)s
) s
where tocsin.owner_matches(s.owner, %(owners)s)
  and (position(lower(%(part)s) in lower(s.name)) > 0 or position(lower(%(part)s) in lower(s.owner)) > 0)
order by s.status <> 'active', s.owner, s.name
limit %(most)s
