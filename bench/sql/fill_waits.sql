-- Insert `count` running runs, each with a runbook-wait timer that is due at `at`, for bench/kinds.py.
-- The step 0 of each run waits; `lapsed` in the payload of the timer ends its wait.
with new_run as (
    select gen_random_uuid() as id, %(owner)s || '-' || number as owner
    from generate_series(1, %(count)s::integer) number
),
actions as (
    insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, owner, state, active, started_at,
                               correlation_id)
    select id, 'page', 'each', id, 1, '{}', owner, 'running', '{"0": {"attempt": 1, "state": "waiting"}}',
           %(at)s::timestamptz, id
    from new_run
)
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select 'runbook-wait', id::text, '0', %(at)s::timestamptz, %(at)s::timestamptz,
       '{"step": "0", "attempt": 1, "lapsed": true}'
from new_run
