-- Insert systems, each with members of its own owners, each with an open alarm.
with systems as (
    insert into tocsin.system_health (system, holds_from)
    select 'system-' || n, tocsin.instant() from generate_series(1, %(systems)s) n
),
members as (
    insert into tocsin.system_member (system, owner, key, required, covered)
    select 'system-' || n, 'plant-' || n || '-' || m, 'dsp.load', true, true
    from generate_series(1, %(systems)s) n, generate_series(1, %(members)s) m
),
alarms as (
    insert into tocsin.alarm (id, event_rule, owner, state, severity, since, correlation_id)
    select md5(n || '-' || m)::uuid, 'hot', 'plant-' || n || '-' || m, 'open', 4, tocsin.instant(), gen_random_uuid()
    from generate_series(1, %(systems)s) n, generate_series(1, %(members)s) m
),
lane as (
    insert into tocsin.lane_partition (lane, partition) values ('data', 0)
)
insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, alarm_id, state)
select 'hot', 'plant-' || n || '-' || m, 'data', 0, 'open', md5(n || '-' || m)::uuid,
       '{"firing_series": {"dsp.load": {"clear_due_at": null}}}'
from generate_series(1, %(systems)s) n, generate_series(1, %(members)s) m
