-- Remove the tick of a schedule and return what it had done last. No row: the clock consumed it, or
-- it was never armed.
delete from tocsin.timer
where kind = 'schedule-tick' and ref = %(ref)s and key = ''
returning last_nominal_at
