-- Stale series; at most 100,000 are counted. Index: current_value_stale. Locks nothing.
select count(*) from (select from tocsin.current_value where freshness = 'stale' limit 100000) c
