-- The events of an alarm in commit order, with those that are kept longer than the log. Locks
-- nothing.
-- Index: event_of_alarm, event_kept_of_alarm.
select seq, ts, recorded_at, type, payload, epoch
from (
    select * from tocsin.event where alarm_id = %(alarm_id)s and seq >= (select h.horizon from tocsin.log_head h)
    union all
    select * from tocsin.event_kept where alarm_id = %(alarm_id)s and seq < (select h.horizon from tocsin.log_head h)
) e
order by seq
