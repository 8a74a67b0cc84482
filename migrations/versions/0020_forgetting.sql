-- What hangs on the log goes with it. Each table that grows has an index in the order in which its rows grow old, so that a page of
-- them is found without reading the others.

create index alarm_ended on tocsin.alarm (resolved_at, id) where state = 'resolved';
create index action_ended on tocsin.action (ended_at, id) where ended_at is not null;
create index ingest_event_at on tocsin.ingest_event (at, key);
create index audit_at on tocsin.audit (at, id);
create index schedule_ended on tocsin.schedule (updated_at, id) where status in ('fired', 'ended', 'cancelled', 'failed');
create index event_kept_of_alarm on tocsin.event_kept (alarm_id) where alarm_id is not null;

-- When it was written: a moment before its event. Rows from before this migration are as old as can be; whether their event is still in
-- the log is looked at anyway.
alter table tocsin.event_lineage add column at timestamptz not null default '-infinity';
alter table tocsin.event_lineage alter column at set default tocsin.instant();
create index event_lineage_at on tocsin.event_lineage (at, event_id);

-- The last run of retention, or the one under way: what it removed so far, by table, and what it had to leave.
create table tocsin.prune_report (
    only_row boolean primary key default true check (only_row),
    began_at timestamptz,
    ended_at timestamptz,
    removed jsonb not null default '{}',
    left_over jsonb not null default '[]'
) with (fillfactor = 50);
insert into tocsin.prune_report default values;

-- The last datapoint of each series before all that are left: a replay that begins there knows what was silent, and since when.
create table tocsin.datapoint_kept (
    owner text not null,
    key text not null,
    arrived_at timestamptz not null,
    ts timestamptz not null,
    value jsonb not null,
    labels jsonb,
    primary key (owner, key)
);
