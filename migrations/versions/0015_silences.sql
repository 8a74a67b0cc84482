-- Silences: matchers that mute notifications for a time.

create table tocsin.silence (
    id uuid primary key,
    matcher text not null check (length(matcher) between 1 and 2000),
    starts_at timestamptz not null,
    ends_at timestamptz not null check (ends_at > starts_at),
    reason text not null default '' check (length(reason) <= 1000),
    created_by text not null,
    created_via text not null,
    created_at timestamptz not null,
    source text not null default 'operator' check (source ~ '^(operator|maintenance:.{1,128})$'),
    recurrence jsonb check ((recurrence is null) = (source = 'operator')),
    ended_at timestamptz
);
-- The performer reads the silences in force before each step of an alarm.
create index silence_active on tocsin.silence (ends_at) where ended_at is null;
-- A maintenance has one window at a time: the next one, or the one in progress.
create unique index silence_window on tocsin.silence (source) where ended_at is null and source <> 'operator';
-- Retention reads the silences that ended first.
create index silence_ended on tocsin.silence (ended_at, id) where ended_at is not null;
comment on table tocsin.silence is
    'Silences: alarms that match notify no one from starts_at until ends_at. Written by commands, by '
    'an apply of maintenance documents, and by the record lane when one ends. Whether one is in force '
    'depends on the time alone; its end is also a one-shot schedule with the same id, whose event '
    'wakes what was held (docs/decisions/0026).';
comment on column tocsin.silence.matcher is 'CEL condition over an alarm.';
comment on column tocsin.silence.source is
    'operator: added by a command; maintenance:<name>: a window of that document.';
comment on column tocsin.silence.recurrence is
    'Recurrence of the maintenance, from which the next window is computed.';
comment on column tocsin.silence.ended_at is
    'When it ended: its end, or earlier if it was expired. Null until the record lane has read the end.';
