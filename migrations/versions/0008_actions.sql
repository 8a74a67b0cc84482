-- Actions: runs, the events that started them, and what they wait for.

-- A run changes with each of its steps, and no index covers what changes. With free space on its
-- page the row is replaced in place and no index is written. Measured: a half to a third of the
-- cost.
create table tocsin.action (
    id uuid primary key,
    name text not null,
    action_rule text not null,
    event_id uuid not null,
    event_seq bigint not null,
    document jsonb not null,
    owner text not null default '',
    state text not null check (
        state in ('gathering', 'queued', 'running', 'completed', 'failed', 'timed_out', 'cancelled', 'skipped')),
    started_at timestamptz not null,
    ended_at timestamptz,
    result jsonb,
    error text,
    correlation_id uuid not null,
    group_key text not null default '',
    alarm_id uuid,
    active jsonb not null default '{}',
    answers jsonb not null default '{}',
    lineage text[] not null default '{}',
    version bigint not null default 1
) with (fillfactor = 60);
create index action_newest on tocsin.action (started_at desc);
create index action_of_rule on tocsin.action (action_rule, started_at);
create index action_active on tocsin.action (action_rule, started_at)
    where state in ('gathering', 'queued', 'running');
create index action_of_alarm on tocsin.action (alarm_id) where state in ('gathering', 'queued', 'running');
-- One run per rule and group gathers events.
create unique index action_gathering on tocsin.action (action_rule, group_key) where state = 'gathering';
-- The next run of a rule with `overlap: queue`.
create index action_queued on tocsin.action (action_rule, group_key, started_at) where state = 'queued';
-- The list of dead runs.
create index action_dead on tocsin.action (ended_at desc) where state in ('failed', 'timed_out');
-- Retention reads the runs that ended first.
create index action_ended on tocsin.action (ended_at, id) where ended_at is not null;
comment on table tocsin.action is
    'Runs: one row per execution of an action, with its current state. The history is in '
    'tocsin.action_step; both change in one transaction. Written by workers, by the clock when a '
    'wait ends, and by an apply or an operator who cancels.';
comment on column tocsin.action.name is 'Name of the action.';
comment on column tocsin.action.action_rule is
    'What started the run: an action_rule, schedule:<schedule>, or notify:<rule>:<channel>.';
comment on column tocsin.action.event_id is
    'First event of the run; all of them are in tocsin.action_event.';
comment on column tocsin.action.document is
    'Action document at the start of the run. A later apply does not change it.';
comment on column tocsin.action.state is
    'gathering: collects events of its group; queued: waits for another run of the rule; '
    'skipped: rejected by overlap or rate limit.';
comment on column tocsin.action.alarm_id is
    'Alarm that the events are about, if they are about one.';
comment on column tocsin.action.active is
    'Steps in progress: {"<step>": {"attempt": 1, "state": "due" or "waiting"}}. Several only '
    'inside parallel.';
comment on column tocsin.action.answers is
    'Results of finished steps for the steps that follow: {"<step or its name>": {...}}.';
comment on column tocsin.action.lineage is
    'The action_rules that led to this run, oldest first. It stops loops.';
comment on column tocsin.action.version is 'Raised by every change, to detect a concurrent one.';

create table tocsin.action_event (
    action_rule text not null,
    event_id uuid not null,
    event_seq bigint not null,
    action_id uuid not null references tocsin.action,
    primary key (action_rule, event_id)
);
create index action_event_of on tocsin.action_event (action_id, event_seq);
comment on table tocsin.action_event is
    'Events of each run: one, or all that its group gathered. The primary key makes an event '
    'start at most one run per action_rule. Written by workers.';

create table tocsin.action_wait (
    action_id uuid not null references tocsin.action,
    step integer not null,
    attempt integer not null,
    condition text not null,
    after_seq bigint not null,
    primary key (action_id, step)
);
comment on table tocsin.action_wait is
    'Steps that wait for an event. Written by workers; the record lane matches the condition.';
comment on column tocsin.action_wait.condition is 'CEL expression that the event must fulfil.';
comment on column tocsin.action_wait.after_seq is 'Only events after this seq count.';

create table tocsin.action_limit (
    action_rule text primary key,
    starts timestamptz[] not null
);
comment on table tocsin.action_limit is
    'Recent starts of each action_rule with a rate limit, at most as many as it allows. Written '
    'by workers.';

create table tocsin.event_lineage (
    event_id uuid primary key,
    lineage text[] not null check (cardinality(lineage) > 0),
    at timestamptz not null default tocsin.instant()
);
-- Retention reads the oldest rows first.
create index event_lineage_at on tocsin.event_lineage (at, event_id);
comment on table tocsin.event_lineage is
    'The action_rules that led to an event, oldest first, so that no rule starts itself again. '
    'Only for events that an action emitted, or that a producer sent with a lineage. Written by '
    'workers.';
comment on column tocsin.event_lineage.at is 'When it was written, shortly before its event.';
