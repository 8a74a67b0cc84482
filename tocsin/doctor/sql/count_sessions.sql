-- Sessions of each service: clock, cdc, worker. Sees the sessions of its own role, and all with the
-- rights of pg_read_all_stats.
select split_part(a.application_name, ' ', 2), count(*)
from pg_stat_activity a
where a.datname = current_database() and a.application_name like 'tocsin %%'
group by 1
