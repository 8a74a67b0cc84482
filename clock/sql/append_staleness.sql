-- The last statement before COMMIT: a calculated datapoint for each series that went stale, with its last value and age, through
-- tocsin.append, which proves the epoch.
select tocsin.append(
    expected_epoch => %(epoch)s,
    calculated => coalesce(array_agg(
        row(d.id, c.owner, c.key, c.stale_since, 'stale', d.id,
            jsonb_build_object(
                'value', c.value, 'ts', c.ts, 'labels', c.labels, 'arrived_at', c.arrived_at,
                'age_s', extract(epoch from c.stale_since - c.arrived_at)))::tocsin.calculated_input
        order by d.position), '{}'))
from unnest(%(ids)s::uuid[], %(owners)s::text[], %(keys)s::text[]) with ordinality as d (id, owner, key, position)
cross join lateral (
    select * from tocsin.current_value one where one.owner = d.owner and one.key = d.key offset 0) c
