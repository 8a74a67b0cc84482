-- The instant of the first timer after an instant. Locks nothing. For tests, with few timers.
select min(t.fire_at) from tocsin.timer t where t.fire_at > %(after)s and t.parked_at is null
