-- The last run, or the running one; the current instant; and whether a run holds the lock (see
-- lock_run).
select r.began_at, r.ended_at, r.removed, r.left_over, tocsin.instant() as now,
       exists (
           select from pg_locks l
           where l.locktype = 'advisory' and l.granted and l.objsubid = 1
             and l.database = (select d.oid from pg_database d where d.datname = current_database())
             and (l.classid::bigint << 32) | l.objid::bigint = hashtext('tocsin.prune'))
from tocsin.prune_report r
