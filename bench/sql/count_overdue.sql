-- Timers of an outage that no clock has fired yet.
select count(*) from tocsin.timer where fire_at < (select tocsin.instant()) - interval '10 seconds'
