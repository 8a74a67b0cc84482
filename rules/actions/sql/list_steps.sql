-- The steps of one run, in the order of the log. Locks nothing. Index: action_step_of.
select s.seq, s.step, s.attempt, s.state, s.recorded_at, s.result
from tocsin.action_step s
where s.action_id = %(id)s
order by s.seq
