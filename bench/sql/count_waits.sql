-- Whether a runbook wait is due.
select count(*) from (
    select from tocsin.timer where kind = 'runbook-wait' and parked_at is null and fire_at <= tocsin.instant() limit 1
) as due
