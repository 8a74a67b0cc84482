-- Notifications: a run knows all alarms of its events, and what holds it.

alter table tocsin.action_event add column alarm_id uuid;
update tocsin.action_event l set alarm_id = e.alarm_id from tocsin.event e where e.seq = l.event_seq and e.alarm_id is not null;
-- The runs of an alarm, whether it started them or joined them.
create index action_event_of_alarm on tocsin.action_event (alarm_id) where alarm_id is not null;
comment on column tocsin.action_event.alarm_id is 'Alarm that the event is about, if it is about one.';
comment on table tocsin.action_event is
    'Events of each run: one, or all that its group gathered, and for a notification the later '
    'transitions of its alarms. The primary key makes an event start at most one run per '
    'action_rule. Written by workers.';

drop index tocsin.action_of_alarm;
drop index tocsin.action_active;
-- The active runs of a rule and group: admission, and alarms that join a group.
create index action_active on tocsin.action (action_rule, group_key)
    where state in ('gathering', 'queued', 'running');
comment on column tocsin.action.alarm_id is
    'Alarm of the first event. All alarms of the run are in tocsin.action_event.';

alter table tocsin.action add column held_by text[];
alter table tocsin.action add column failing_since timestamptz;
create index action_held on tocsin.action using gin (held_by) where held_by is not null;
-- Notifications that cannot be delivered, the longest first.
create index action_failing on tocsin.action (failing_since) where failing_since is not null;
comment on column tocsin.action.held_by is
    'What holds a step of the run: snooze, silence:<id>, alarm:<id of the inhibiting alarm>.';
comment on column tocsin.action.failing_since is
    'First of the failed deliveries of a notification since the last success. It stays after the '
    'notification was given up.';
comment on column tocsin.action.action_rule is
    'What started the run: an action_rule, schedule:<schedule>, or notify:<rule>:<channel>, where '
    'the rule is an event_rule, stale:<datapoint_type> or an action_rule.';
comment on column tocsin.action.group_key is
    'Values of group_by as JSON; of a notification about one alarm: the id of the alarm.';
