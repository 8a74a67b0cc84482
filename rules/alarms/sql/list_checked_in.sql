-- The newest check-in of each name and owner, whether a document expects it or not. Locks nothing.
select substr(c.key, 11), c.owner, c.arrived_at
from tocsin.current_value c
where starts_with(c.key, 'heartbeat.') and c.key not like '%%.log'
order by 1, 2
