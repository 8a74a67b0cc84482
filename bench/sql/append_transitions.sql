-- Append `count` events of opened alarms, one for each owner, in one transaction. With `owner` =
-- 'plant' the owners are the members that fill_systems created for 100 systems. With any other
-- value they belong to no system.
select tocsin.append(array_agg(
    row(e.id, timestamptz '2026-03-02', 'derived', 'alarm-opened', '', 'hot', '',
        %(owner)s || '-' || e.n %% 100 + 1 || '-' || e.n / 100 + 1, null,
        md5((e.n %% 100 + 1) || '-' || e.n / 100 + 1)::uuid, 4, null, e.id,
        jsonb_build_object('n', e.n, 'text', repeat('x', 60)))::tocsin.event_input))
from (select gen_random_uuid() as id, n from generate_series(1, %(count)s) n) e
