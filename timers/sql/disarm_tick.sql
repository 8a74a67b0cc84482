-- Remove the tick of a schedule and return its last occurrence that was fired or missed. No
-- row: the schedule has ended, or the tick was never armed.
delete from tocsin.timer
where kind = 'schedule-tick' and ref = %(ref)s and key = ''
returning last_nominal_at, last_identity
