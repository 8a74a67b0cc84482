-- Alarms: what rules remember of each owner, the alarms, and the timers that wait for a watermark.

create table tocsin.rule_state (
    event_rule text not null,
    owner text not null,
    lane text not null,
    partition integer not null,
    phase text not null default 'ok' check (phase in ('ok', 'pending', 'open', 'clearing')),
    alarm_id uuid,
    state jsonb not null default '{}',
    version bigint not null default 1,
    primary key (event_rule, owner),
    foreign key (lane, partition) references tocsin.lane_partition
) with (fillfactor = 70);
comment on table tocsin.rule_state is
    'State of each event_rule for each owner. Written by workers, by the clock when a sustain '
    'fires, and by an apply.';
comment on column tocsin.rule_state.event_rule is
    'Name of the event_rule; stale:<type> for the rule that a datapoint_type implies.';
comment on column tocsin.rule_state.lane is 'Lane whose inputs the rule evaluates.';
comment on column tocsin.rule_state.partition is
    'Partition of that lane that the owner belongs to.';
comment on column tocsin.rule_state.phase is
    'pending: the condition holds, but not yet for long enough; clearing: it is clear, but not '
    'yet for long enough.';
comment on column tocsin.rule_state.alarm_id is 'Alarm that is pending or open.';
comment on column tocsin.rule_state.state is
    'State of the rule engine as JSON: firing_series holds the series that fire, tracks the '
    'previous values of rules that look back.';
comment on column tocsin.rule_state.version is
    'Raised by every change, to detect a concurrent one.';

create table tocsin.alarm (
    id uuid primary key,
    event_rule text not null,
    owner text not null default '',
    state text not null check (state in ('pending', 'open', 'resolved')),
    severity smallint not null,
    since timestamptz not null,
    opened_at timestamptz,
    resolved_at timestamptz,
    resolved_reason text,
    payload jsonb not null default '{}',
    source_event_id uuid,
    correlation_id uuid not null,
    acknowledged_at timestamptz,
    acknowledged_by text,
    acknowledged_note text,
    snoozed_until timestamptz,
    snoozed_by text,
    version bigint not null default 1
) with (fillfactor = 70);
-- At most one alarm per rule and owner is pending or open.
create unique index alarm_active on tocsin.alarm (event_rule, owner) where state in ('pending', 'open');
create index alarm_newest on tocsin.alarm (since desc);
-- Health reads the alarms of the owners of members.
create index alarm_active_owner on tocsin.alarm (owner) where state <> 'resolved';
-- Retention reads the alarms that were resolved first.
create index alarm_ended on tocsin.alarm (resolved_at, id) where state = 'resolved';
comment on table tocsin.alarm is
    'Alarms of event_rules. Written by workers, by the clock when a sustain fires, by an apply, '
    'and by operators who acknowledge or snooze; neither of these changes the state.';
comment on column tocsin.alarm.since is 'When the condition began to hold.';
comment on column tocsin.alarm.opened_at is
    'When the condition had held for long enough; null while pending.';
comment on column tocsin.alarm.source_event_id is
    'Event that made the condition hold, if it was an event.';
comment on column tocsin.alarm.correlation_id is 'Shared by all records that the alarm leads to.';

-- The clock decides what to fire with statements of its own, which lock rows: lock_due_watchdogs
-- and lock_due_sustains. A change of their conditions belongs here as well.
create view tocsin.held_timer as
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
join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner
join tocsin.lane_partition p on p.lane = s.lane and p.partition = s.partition
where t.kind = 'for-sustain' and t.key <> 'snooze' and t.parked_at is null and t.fire_at <= (select tocsin.instant())
  and (p.watermark is null or p.watermark < t.nominal_at);
comment on view tocsin.held_timer is
    'Timers that are due but held, because the watermark of their partition lies before their '
    'deadline. Read by the commands, the metrics, and the clock, which reports them.';

create table tocsin.pipeline_report (
    only_row boolean primary key default true check (only_row),
    since timestamptz
) with (fillfactor = 50);
insert into tocsin.pipeline_report default values;
comment on table tocsin.pipeline_report is
    'One row: whether held timers were reported. Written by the clock with the events '
    'pipeline-behind and pipeline-caught-up, so that each episode is reported once.';
comment on column tocsin.pipeline_report.since is 'Start of the episode; null if there is none.';
