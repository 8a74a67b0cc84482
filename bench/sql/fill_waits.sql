-- Running actions whose waits are due.
with n as (select gen_random_uuid() as id, %(owner)s || '-' || g as owner from generate_series(1, %(count)s::integer) g),
actions as (
    insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, owner, state, active, started_at,
                               correlation_id)
    select id, 'page', 'each', id, 1, '{}', owner, 'running', '{"0": {"attempt": 1, "state": "waiting"}}',
           %(at)s::timestamptz, id
    from n
)
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select 'runbook-wait', id::text, '0', %(at)s::timestamptz, %(at)s::timestamptz, '{"step": "0", "attempt": 1, "lapsed": true}'
from n
