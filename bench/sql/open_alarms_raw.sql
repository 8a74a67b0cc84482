-- Insert the rows of `count` openings without deciding anything: a datapoint, a current value, a
-- state, an alarm and an event each.
with n as (
    select g, 'raw-' || g as owner, gen_random_uuid() as id
    from generate_series(%(first)s::integer, %(first)s::integer + %(count)s::integer - 1) as g
),
points as (
    insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value)
    select timestamptz '2026-01-01 12:00Z' + g * interval '1 millisecond', g, 0, owner, 'dsp.load', '2026-01-01 12:00Z', '70'
    from n
),
current as (
    insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at)
    select owner, 'dsp.load', 0, '70', '2026-01-01 12:00Z', '2026-01-01 12:00Z', g, '2026-01-01 12:00Z' from n
),
states as (
    insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, alarm_id, state)
    select 'hot', owner, 'data', 0, 'open', id, jsonb_build_object('phase', 'open', 'owner', owner) from n
),
alarms as (
    insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, correlation_id)
    select id, 'hot', owner, 'open', 2, '2026-01-01 12:00Z', '2026-01-01 12:00Z', id from n
)
select tocsin.append(array_agg(
    row(gen_random_uuid(), timestamptz '2026-01-01 12:00Z', 'derived', 'alarm-opened', null, 'hot', null, owner, null, id,
        2, null, id, jsonb_build_object('message', owner))::tocsin.event_input))
from n
