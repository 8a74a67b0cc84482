-- All runs that a suppression holds. Locks nothing. Index: action_active.
select a.id, a.action_rule
from tocsin.action a
where a.held_by is not null and a.state = 'running'
