-- Insert pending alarms and their states. Their sustains are due.
with n as (
    select gen_random_uuid() as id, %(owner)s || '-' || g as owner from generate_series(1, %(count)s::integer) g
),
states as (
    insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, alarm_id, state)
    select 'hot', owner, 'data', 0, 'pending', id, jsonb_build_object('phase', 'pending', 'due_at', %(at)s::text) from n
),
alarms as (
    insert into tocsin.alarm (id, event_rule, owner, state, severity, since, correlation_id)
    select id, 'hot', owner, 'pending', 4, %(at)s::timestamptz, id from n
)
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select 'for-sustain', id::text, 'open', %(at)s::timestamptz, %(at)s::timestamptz, '{"message": "hot"}' from n
