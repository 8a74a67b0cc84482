-- Move alarms whose sustain is over: pending ones open, open ones resolve, snoozed ones are no
-- longer snoozed. In key order, each alarm once.
update tocsin.alarm a
set state = case d.key when 'open' then 'open' when 'clear' then 'resolved' else a.state end,
    opened_at = case d.key when 'open' then d.at else a.opened_at end,
    resolved_at = case d.key when 'clear' then d.at else a.resolved_at end,
    resolved_reason = case d.key when 'clear' then d.reason else a.resolved_reason end,
    snoozed_until = case d.key when 'snooze' then null else a.snoozed_until end,
    version = a.version + 1
from (
    select m.*
    from unnest(%(alarm_ids)s::uuid[], %(keys)s::text[], %(at)s::timestamptz[], %(reasons)s::text[])
        as m (alarm_id, key, at, reason)
    join tocsin.alarm locked on locked.id = m.alarm_id
    order by locked.id
    for update of locked
) as d
where a.id = d.alarm_id
