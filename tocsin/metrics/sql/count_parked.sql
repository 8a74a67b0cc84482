-- Parked timers of each kind. Index: timer_parked. Locks nothing.
select t.kind, count(*) from tocsin.timer t where t.parked_at is not null group by t.kind
