-- Workers that run and cannot work, with the reason. No lock.
select holder, problem, remedy
from tocsin.lane_worker
where seen_until > (select tocsin.instant()) and problem is not null
order by since, holder
