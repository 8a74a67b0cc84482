-- Mark series as stale whose deadline passed (in microseconds), and append a calculated datapoint
-- with the last value and its age for each. A worker that evaluates the deadline first writes the
-- same (rules/alarms/staleness.py). The last statement before COMMIT: tocsin.append proves the
-- epoch. The rows are locked by lock_due_watchdogs.
with marked as (
    update tocsin.current_value c
    set freshness = 'stale', stale_since = timestamptz 'epoch' + d.deadline * interval '1 microsecond',
        version = c.version + 1
    from unnest(%(ids)s::uuid[], %(value_ctids)s::tid[], %(deadlines)s::bigint[])
        with ordinality as d (id, row_id, deadline, position)
    where c.ctid = d.row_id
    returning d.position, d.id, c.owner, c.key, c.stale_since, c.value, c.ts, c.labels, c.arrived_at
)
select tocsin.append(
    expected_epoch => %(epoch)s,
    calculated => coalesce(array_agg(
        row(m.id, m.owner, m.key, m.stale_since, 'stale', m.id,
            jsonb_build_object(
                'value', m.value, 'labels', m.labels,
                'ts', to_char(m.ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                'arrived_at', to_char(m.arrived_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                'age_s', extract(epoch from m.stale_since - m.arrived_at)::float8))::tocsin.calculated_input
        order by m.position), '{}'))
from marked m
