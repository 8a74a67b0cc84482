-- Facts that wait, up to an instant, in the order in which they are taken: `most` of them and all others of the last instant. Locks
-- nothing: only who holds the lock of health removes any.
select id, owner, at, what, subject, severity, since, keys
from tocsin.member_observation
where at <= %(until)s and at <= coalesce(
    (select f.at from tocsin.member_observation f order by f.at offset %(most)s - 1 limit 1), 'infinity')
order by at, id
