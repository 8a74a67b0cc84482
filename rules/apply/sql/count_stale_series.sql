-- The number of stale series by key. No lock. Index: current_value_stale.
select key, count(*) from tocsin.current_value where freshness = 'stale' group by key
