-- Whether a runbook wait is due. The instant is read once: a volatile function in the condition would
-- be called for every timer.
select count(*) from (
    select from tocsin.timer
    where kind = 'runbook-wait' and parked_at is null and fire_at <= (select tocsin.instant())
    limit 1
) as due
