-- Timer rows written since the statistics began, and the size of the timers with their indexes in
-- bytes.
select s.n_tup_ins + s.n_tup_upd + s.n_tup_del, pg_total_relation_size('tocsin.timer')
from pg_stat_user_tables s
where s.schemaname = 'tocsin' and s.relname = 'timer'
