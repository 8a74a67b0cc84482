-- Identity of alarms: an event_rule has one alarm per owner and instance. The instance is the key of
-- a series, or what `per` of the rule names. The key of a series includes its dimensions:
-- cpu.temp{core="0"}.

-- A key has at most 255 characters and 1,024 bytes without its dimensions, and 512 with them.
alter table tocsin.timer drop constraint timer_key_check;
alter table tocsin.timer add constraint timer_key_check check (length(key) <= 512);
alter table tocsin.current_value drop constraint current_value_key_check;
alter table tocsin.current_value add constraint current_value_key_check check (length(key) between 1 and 512);
alter table tocsin.datapoint_calculated drop constraint datapoint_calculated_key_check;
alter table tocsin.datapoint_calculated
    add constraint datapoint_calculated_key_check check (length(key) between 1 and 512);

alter table tocsin.rule_state
    add column instance text not null default '' check (length(instance) <= 512),
    add column recheck_at timestamptz;
alter table tocsin.alarm add column instance text not null default '' check (length(instance) <= 512);

-- An alarm over datapoints was the one of its owner. It continues as the alarm of the series that
-- its message names; what the rule knew about other series is learnt again from their next values.
delete from tocsin.rule_state where lane = 'data' and phase = 'ok';
update tocsin.alarm set instance = payload ->> 'key' where payload ? 'key';
update tocsin.rule_state s
set instance = a.instance,
    state = s.state || jsonb_build_object(
        'tracks', '{}'::jsonb,
        'firing_series', coalesce(
            (select jsonb_object_agg(f.key, f.value) from jsonb_each(s.state -> 'firing_series') f where f.key = a.instance),
            '{}'))
from tocsin.alarm a
where a.id = s.alarm_id and s.lane = 'data';

alter table tocsin.rule_state drop constraint rule_state_pkey;
alter table tocsin.rule_state add primary key (event_rule, owner, instance);
-- A worker looks for the states that are due with each batch of its partition.
create index rule_state_recheck on tocsin.rule_state (lane, partition, recheck_at) where recheck_at is not null;
comment on table tocsin.rule_state is
    'State of each event_rule for each owner and instance. Written by workers, by the clock when '
    'a sustain fires, by an apply, and by an operator who resolves an alarm.';
comment on column tocsin.rule_state.instance is
    'What the rule has an alarm of its own for: the key of a series, or the values of `per` as '
    'JSON. Empty: the owner as a whole.';
comment on column tocsin.rule_state.recheck_at is
    'When the state changes although nothing arrives: values leave a window. The worker that moves '
    'the watermark beyond it evaluates the rule.';

drop index tocsin.alarm_active;
-- At most one alarm per rule, owner and instance is pending or open.
create unique index alarm_active on tocsin.alarm (event_rule, owner, instance) where state in ('pending', 'open');
comment on table tocsin.alarm is
    'Alarms of event_rules. Written by workers, by the clock when a sustain fires, by an apply, '
    'and by operators who acknowledge, snooze or resolve.';
comment on column tocsin.alarm.instance is 'As in tocsin.rule_state.';

create or replace view tocsin.held_timer as
select t.kind, t.ref, t.key, t.nominal_at, p.lane, p.partition
from tocsin.timer t
join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
where t.kind = 'watchdog' and t.parked_at is null and t.fire_at <= (select tocsin.instant())
  and c.freshness = 'fresh'
  and tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint) <= t.nominal_at
  and (p.watermark is null or p.watermark < t.nominal_at)
union all
select t.kind, t.ref, t.key, t.nominal_at, p.lane, p.partition
from tocsin.timer t
join tocsin.alarm a on a.id = t.ref::uuid
join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance
join tocsin.lane_partition p on p.lane = s.lane and p.partition = s.partition
where t.kind = 'for-sustain' and t.key <> 'snooze' and t.parked_at is null and t.fire_at <= (select tocsin.instant())
  -- An input at the very instant of a sustain comes first.
  and (p.watermark is null or p.watermark <= t.nominal_at);

alter table tocsin.member_observation add column instance text not null default '';
comment on column tocsin.member_observation.instance is
    'Instance of the alarm; empty if the observation is about a series.';
alter type tocsin.member_observation_input add attribute instance text;
alter table tocsin.member_alarm add column instance text not null default '';
update tocsin.member_alarm set instance = keys[1] where cardinality(keys) > 0;
alter table tocsin.member_alarm drop constraint member_alarm_pkey;
alter table tocsin.member_alarm add primary key (owner, rule, instance);
comment on column tocsin.member_alarm.instance is 'As in tocsin.rule_state.';

create or replace function tocsin.record_observations(
    events tocsin.event_input[],
    calculated tocsin.calculated_input[],
    observations tocsin.member_observation_input[]
) returns void
language plpgsql volatile
-- Without this, Postgres plans every call again, which takes longer than the call.
set plan_cache_mode = force_generic_plan
as $$
begin
    if observations is not null then
        insert into tocsin.member_observation (owner, at, what, subject, severity, since, keys, instance)
        select o.owner, o.at, o.what, o.subject, o.severity, o.since, coalesce(o.keys, '{}'), coalesce(o.instance, '')
        from unnest(observations) with ordinality as o (owner, at, what, subject, severity, since, keys, instance, position)
        where exists (select from tocsin.system_member m where m.owner = o.owner)
        order by o.position;
        return;
    end if;
    -- Most records concern no member. This test does not copy the arrays and reads only the index
    -- on owner.
    if exists (select from (select unnest(calculated) as c) g
               where (select true from tocsin.system_member m where m.owner = (g.c).owner limit 1)) then
        insert into tocsin.member_observation (owner, at, what, subject)
        select c.owner, c.ts, c.kind, c.key
        from unnest(calculated) with ordinality as c (id, owner, key, ts, kind, correlation_id, payload, position)
        where c.kind in ('fresh', 'stale') and exists (select from tocsin.system_member m where m.owner = c.owner)
        order by c.position;
    end if;
    if exists (select from (select unnest(events) as e) g
               where (g.e).alarm_id is not null
                 and (select true from tocsin.system_member m where m.owner = (g.e).owner limit 1)) then
        insert into tocsin.member_observation (owner, at, what, subject, severity, since, keys, instance)
        select e.owner, e.ts, 'alarm', e.rule, e.severity, a.since,
               case when e.type = 'alarm-opened' then
                   array(select jsonb_array_elements_text(s.state -> 'alarm' -> 'series'))
               else '{}' end,
               a.instance
        from (
            select g.*
            from unnest(events) with ordinality as g (id, ts, origin, type, schedule, rule, action, owner, fire_at, alarm_id,
                                                      severity, source_event_id, correlation_id, payload, position)
            where g.origin = 'derived' and g.type in ('alarm-opened', 'alarm-resolved')
              and exists (select from tocsin.system_member m where m.owner = g.owner)
            offset 0
        ) e
        join tocsin.alarm a on a.id = e.alarm_id
        join tocsin.rule_state s
            on s.event_rule = e.rule and s.owner = e.owner and s.instance = a.instance and s.lane = 'data'
        order by e.position;
    end if;
end
$$;
