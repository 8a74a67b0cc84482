-- Control of schedules and of runs.

alter table tocsin.action
    add column ends_with text[] not null default '{resolved,acknowledged}',
    add column ending text check (ending in ('ended', 'cancelled'));
comment on column tocsin.action.ends_with is
    'Transitions of its alarm that cancel the run, from its action_rule.';
comment on column tocsin.action.ending is
    'Set when the steps of `finally` begin, once in a run: ended (all other steps have ended) or '
    'cancelled. The state stays running until they have ended.';

alter table tocsin.action_wait
    add column since_seq bigint not null default 0,
    add column is_new boolean not null default true;
comment on column tocsin.action_wait.since_seq is
    'Seq of the event that started the run. Events after it count.';
comment on column tocsin.action_wait.after_seq is
    'Newest seq when the step began. The record lane matches later events as it reads them.';
comment on column tocsin.action_wait.is_new is
    'True until the record lane has matched the events from since_seq to after_seq.';
