-- The fires with these derived ids, at most one each. Locks nothing. Index: the unique id of each
-- partition.
select id, seq, ts, recorded_at, fire_at, epoch
from tocsin.event
where id = any(%(ids)s::uuid[]) and origin = 'scheduled'
