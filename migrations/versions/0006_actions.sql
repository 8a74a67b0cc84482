-- Actions that have several steps, wait, gather events and take turns.

alter table tocsin.action
    drop constraint action_state_check,
    add constraint action_state_check check (
        state in ('gathering', 'queued', 'running', 'completed', 'failed', 'timed_out', 'cancelled', 'skipped')),
    drop constraint action_action_rule_event_id_key,
    add column group_key text not null default '',
    add column alarm_id uuid,
    -- Steps under way: {"<step>": {"attempt": 1, "state": "due" | "waiting"}}; several only inside `parallel`.
    add column active jsonb not null default '{}',
    -- What finished steps answered, for the steps that follow: {"<step or its name>": {...}}.
    add column answers jsonb not null default '{}',
    add column lineage text[] not null default '{}',
    add column version bigint not null default 1;
update tocsin.action
set active = jsonb_build_object(step::text, jsonb_build_object('attempt', attempt, 'state', 'due'))
where state = 'running';
alter table tocsin.action drop column step, drop column attempt;
create unique index action_gathering on tocsin.action (action_rule, group_key) where state = 'gathering';
create index action_under_way on tocsin.action (action_rule, started_at) where state in ('gathering', 'queued', 'running');
create index action_of_alarm on tocsin.action (alarm_id) where state in ('gathering', 'queued', 'running');
create index action_of_rule on tocsin.action (action_rule, started_at);

-- Which events an action is about: one alone, or all that its group gathered. Unique: an event starts a rule's action once (I7).
create table tocsin.action_event (
    action_rule text not null,
    event_id uuid not null,
    event_seq bigint not null,
    action_id uuid not null references tocsin.action,
    primary key (action_rule, event_id)
);
insert into tocsin.action_event (action_rule, event_id, event_seq, action_id)
select action_rule, event_id, event_seq, id from tocsin.action;
create index action_event_of on tocsin.action_event (action_id, event_seq);

-- Steps that wait for an event: the record lane matches what comes after `after_seq`.
create table tocsin.action_wait (
    action_id uuid not null references tocsin.action,
    step integer not null,
    attempt integer not null,
    condition text not null,
    after_seq bigint not null,
    primary key (action_id, step)
);

-- Partitions were made with constraints of their own, which the parent does not take along when it drops its own.
alter table tocsin.action_step drop constraint action_step_state_check;
do $$
declare
    part regclass;
begin
    for part in select i.inhrelid from pg_inherits i where i.inhparent = 'tocsin.action_step'::regclass loop
        execute format('alter table %s drop constraint if exists action_step_state_check', part);
    end loop;
end
$$;
alter table tocsin.action_step add constraint action_step_state_check check (
    state in ('due', 'waiting', 'completed', 'failed', 'timed_out', 'cancelled', 'skipped'));
