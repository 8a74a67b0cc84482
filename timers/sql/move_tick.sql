-- The tick's occurrence under the new tz data. The row is locked by lock_zoned_ticks.
update tocsin.timer
set nominal_at = %(nominal_at)s, fire_at = %(fire_at)s
where kind = 'schedule-tick' and ref = %(ref)s and key = ''
