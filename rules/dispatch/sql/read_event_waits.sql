-- Steps that wait for an event and began before the newest of a batch, with what started their actions. Locks nothing.
select w.action_id, w.step, w.attempt, w.condition, w.after_seq,
       e.id, e.type, e.owner, e.schedule, e.rule, e.correlation_id, e.payload
from tocsin.action_wait w
join tocsin.action a on a.id = w.action_id
left join tocsin.event e on e.seq = a.event_seq
where w.after_seq < %(newest)s
order by w.action_id, w.step
