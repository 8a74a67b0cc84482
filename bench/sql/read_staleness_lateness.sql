-- The number of series that became stale since an instant, and percentiles of their lateness in
-- milliseconds.
select count(*), coalesce(percentile_cont(array[0.5, 0.99, 1.0]) within group (
    order by extract(epoch from c.recorded_at - c.ts) * 1000), '{0, 0, 0}')
from tocsin.datapoint_calculated c
where c.kind = 'stale' and c.ts >= %(since)s
