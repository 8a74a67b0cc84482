-- One batch of stale series of as many owners. Those of fill_systems begin with plant.
select tocsin.append(calculated => array_agg(
    row(e.id, %(owner)s || '-' || e.n %% 100 + 1 || '-' || e.n / 100 + 1, 'dsp.load', timestamptz '2026-03-02', 'stale', e.id,
        jsonb_build_object('n', e.n, 'text', repeat('x', 60)))::tocsin.calculated_input))
from (select gen_random_uuid() as id, n from generate_series(1, %(count)s) n) e
