-- Workers that are alive and share the lanes, oldest first. No lock.
select holder from tocsin.lane_worker where seen_until > (select tocsin.instant()) and problem is null order by since, holder
