-- Append `count` calculated datapoints (`stale`), one for each owner, in one transaction. With
-- `owner` = 'plant' the owners are the members that fill_systems created for 100 systems (plant-1-1,
-- plant-2-1, ...). With any other value they belong to no system.
select tocsin.append(calculated => array_agg(
    row(record.id, %(owner)s || '-' || record.number %% 100 + 1 || '-' || record.number / 100 + 1, 'dsp.load',
        timestamptz '2026-03-02', 'stale', record.id,
        jsonb_build_object('n', record.number, 'text', repeat('x', 60)))::tocsin.calculated_input))
from (select gen_random_uuid() as id, number from generate_series(1, %(count)s) number) record
