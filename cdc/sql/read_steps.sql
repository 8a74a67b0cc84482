-- Action steps of a range of seq, in order. Index: primary key. Columns as schemas.step.StepRow.
select seq, id, action_id, name, owner, step, attempt, state, recorded_at, correlation_id, source_event_id, result::text
from tocsin.action_step
where seq > %(after)s and seq <= %(until)s
order by seq
