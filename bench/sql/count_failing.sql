-- Notifications whose last delivery failed.
select count(*) from tocsin.action where failing_since is not null
