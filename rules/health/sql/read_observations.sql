-- Undecided observations up to an instant, in the order in which they are processed: `limit` of
-- them, and all others of the last instant. Locks nothing: only the holder of the lock of health
-- deletes any.
select id, owner, at, what, subject, severity, since, keys, instance
from tocsin.member_observation
where at <= %(until)s and at <= coalesce(
    (select o.at from tocsin.member_observation o order by o.at offset %(limit)s - 1 limit 1), 'infinity')
order by at, id
