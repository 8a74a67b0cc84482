-- Open alarms by severity; at most 100,000 are counted. Index: alarm_active_owner. Locks nothing.
select a.severity, count(*)
from (select severity from tocsin.alarm where state = 'open' limit 100000) a
group by a.severity
