-- Deletes all systems with their members, the known states of the members and all observations,
-- before insert_systems. Under the locks of health and of the record log. Returns since when each
-- system has had its health.
with series as (delete from tocsin.member_series),
     alarms as (delete from tocsin.member_alarm),
     observations as (delete from tocsin.member_observation)
delete from tocsin.system_health returning system, since
