-- How many series of each key are stale. Locks nothing. Index: current_value_stale has no others.
select key, count(*) from tocsin.current_value where freshness = 'stale' group by key
