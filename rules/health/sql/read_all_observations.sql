-- All undecided observations, in the order in which they are processed. Locks nothing, as
-- read_observations.
select id, owner, at, what, subject, severity, since, keys, instance
from tocsin.member_observation
order by at, id
