-- All systems with their members, all that is known and all facts go; what holds from now on is put in their place. Under the
-- locks of health and of the log. Returns since when each system has been what it is in.
with series as (delete from tocsin.member_series),
     alarms as (delete from tocsin.member_alarm),
     facts as (delete from tocsin.member_observation)
delete from tocsin.system_health returning system, since
