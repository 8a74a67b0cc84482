-- Heartbeats: deadlines of check-ins are states of rules that a worker evaluates when the watermark of
-- their partition has passed them (docs/decisions/0032).

create or replace function tocsin.is_reserved_type(type text) returns boolean
language sql immutable parallel safe
return type ~ '^(alarm|schedule|rules|notification|silence|maintenance|inhibit|action|pipeline|system|cdc|quota|heartbeat)-'
       or type in ('series-forgotten', 'log-pruned', 'log-gap-recorded', 'stream-rebuilt', 'owner-forgotten');

-- A heartbeat may be applied before the first worker creates the partitions; that worker then places it.
alter table tocsin.rule_state drop constraint rule_state_lane_partition_fkey;

comment on column tocsin.rule_state.event_rule is
    'Name of the event_rule; stale:<type> for the rule that a datapoint_type implies, heartbeat:<name> for a heartbeat.';
comment on column tocsin.rule_state.recheck_at is
    'When the state changes although nothing arrives: values leave a window, or a check-in is late. The worker that '
    'moves the watermark beyond it evaluates the rule.';
comment on column tocsin.action.action_rule is
    'What started the run: an action_rule, schedule:<schedule>, or notify:<rule>:<channel>, where the rule is an '
    'event_rule, stale:<datapoint_type>, heartbeat:<heartbeat> or an action_rule.';

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
  and (p.watermark is null or p.watermark <= t.nominal_at)
union all
select 'heartbeat', s.owner, s.event_rule, s.recheck_at, p.lane, p.partition
from tocsin.lane_partition p
join tocsin.rule_state s on s.lane = p.lane and s.partition = p.partition
where p.lane = 'data' and starts_with(s.event_rule, 'heartbeat:') and s.recheck_at <= (select tocsin.instant())
  and (p.watermark is null or p.watermark <= s.recheck_at);
comment on view tocsin.held_timer is
    'Timers, and deadlines of heartbeats, that are due but held, because the watermark of their partition lies before '
    'their deadline. Read by the commands, the metrics, and the clock, which reports them.';
