-- Steps that wait for an event and began before the newest event of a batch, and steps whose wait
-- is new, with the event that started their run. The columns of the event are TRIGGER_FIELDS of rules/language/cel/steps.py.
-- Locks nothing.
select w.action_id, w.step, w.attempt, w.condition, w.after_seq, a.event_seq, w.is_new,
       e.id, e.type, e.owner, e.schedule, e.rule, e.correlation_id, e.payload
from tocsin.action_wait w
join tocsin.action a on a.id = w.action_id
left join tocsin.event e on e.seq = a.event_seq
where w.after_seq < %(newest)s or w.is_new
order by w.action_id, w.step
