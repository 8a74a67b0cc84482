-- Appends one batch of events in one transaction.
select tocsin.append(
    array_agg(row(e.id, %(at)s::timestamptz, 'caused', 'noted', '', 'bench', '', 'plant 7', null, null, null, null, e.id,
                  jsonb_build_object('n', e.n, 'text', repeat('x', 60)))::tocsin.event_input))
from (select gen_random_uuid() as id, n from generate_series(1, %(count)s) n) e
