-- All facts that wait, in the order in which they are taken. Locks nothing, as read_facts.
select id, owner, at, what, subject, severity, since, keys
from tocsin.member_observation
order by at, id
