-- How long the oldest commit has waited for a synchronous standby, in seconds; 0 if none waits. Sees
-- the sessions of its own role, and all with the rights of pg_read_all_stats.
select coalesce(max(extract(epoch from tocsin.instant() - a.query_start)), 0)::double precision
from pg_stat_activity a
where a.datname = current_database() and a.wait_event = 'SyncRep'
