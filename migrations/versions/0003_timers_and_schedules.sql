-- Timers and schedules: the working set of the clock, and the recurrences that arm its ticks.

create table tocsin.timer (
    kind text not null check (kind in ('schedule-tick', 'for-sustain', 'runbook-wait', 'watchdog')),
    -- The token of an owner has at most 12 bytes for each of its 128 characters.
    ref text not null check (length(ref) between 1 and 1536),
    key text not null default '' check (length(key) <= 256),
    -- Bounded to instants that every client can read: one unreadable row would stop the whole scan.
    fire_at timestamptz not null check (fire_at between '0001-01-03 00:00Z' and '9999-12-30 00:00Z'),
    nominal_at timestamptz not null check (nominal_at between '0001-01-03 00:00Z' and '9999-12-30 00:00Z'),
    last_nominal_at timestamptz,
    last_identity text,
    generation bigint not null default 1,
    payload jsonb not null default '{}',
    attempts integer not null default 0,
    last_error text,
    parked_at timestamptz,
    identity text,
    identity_at timestamptz,
    primary key (kind, ref, key)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05
);
-- The scan continues behind (fire_at, ref, key), so a burst at one instant never makes it walk over
-- the rows that it has consumed.
create index timer_due on tocsin.timer (kind, fire_at, ref, key) where parked_at is null;
-- Parked timers are few. `tocsin doctor` and the metrics must find them without reading a million
-- others.
create index timer_parked on tocsin.timer (kind) where parked_at is not null;
comment on table tocsin.timer is
    'Working set of the clock: one row per pending fire. Written by schedules, workers, services '
    '(tocsin.arm) and the clock, which removes or moves a row in the transaction of what it '
    'fires.';
comment on column tocsin.timer.ref is
    'What the timer belongs to: id of the schedule (schedule-tick), the alarm (for-sustain) or '
    'the run (runbook-wait), or the token of the owner (watchdog).';
comment on column tocsin.timer.key is
    'Which timer of that object: open, clear or snooze (for-sustain), the step, <step>/report or '
    'group (runbook-wait), the key of the series (watchdog); empty for schedule-tick.';
comment on column tocsin.timer.fire_at is
    'When the clock fires it: nominal time plus spread or backoff, and never before it was armed.';
comment on column tocsin.timer.nominal_at is 'Instant that the timer is for.';
comment on column tocsin.timer.last_nominal_at is
    'Newest occurrence of the schedule that is done. It is kept here and not in tocsin.schedule, '
    'so that a fire writes one row less (docs/decisions/0003).';
comment on column tocsin.timer.last_identity is
    'Wall time and fold of that occurrence, if they identify it: new tz data may move the wall time '
    'to another instant, and it must not fire again.';
comment on column tocsin.timer.generation is
    'Generation of the schedule that armed the tick; 1 for other kinds unless the caller gives '
    'one.';
comment on column tocsin.timer.attempts is 'Failed fires in a row.';
comment on column tocsin.timer.parked_at is
    'Set after too many failed fires: the clock ignores the row until `tocsin timers retry`.';
comment on column tocsin.timer.identity is
    'Identity of the occurrence of a tick: wall time and fold, or the instant. Stored when the '
    'tick is armed, because computing it again costs as much as the next occurrence '
    '(docs/decisions/0015).';
comment on column tocsin.timer.identity_at is
    'Nominal time that identity belongs to. If it differs from nominal_at, the clock computes '
    'the identity again.';

create table tocsin.schedule (
    id uuid primary key default gen_random_uuid(),
    owner text not null default '' check (length(owner) <= 128),
    name text not null check (length(name) between 1 and 128),
    recurrence jsonb not null check (tocsin.is_readable(recurrence)),
    spread interval not null default '0' check (spread >= '0'),
    catch_up text not null default 'latest' check (catch_up in ('latest', 'all', 'none')),
    "window" interval check ("window" >= '0'),
    grace interval check (grace >= '0'),
    max_catch_up integer not null default 100 check (max_catch_up between 1 and 10000),
    type text not null default 'schedule-fired' check (type ~ '^[A-Za-z0-9_-]{1,128}$'),
    -- The limit of an event, so that a payload that cannot fire is rejected when it is stored.
    payload jsonb not null default '{}'
        check (octet_length(payload::text) <= 229376 and tocsin.is_readable(payload)),
    action text check (length(action) between 1 and 128),
    status text not null default 'active'
        check (status in ('active', 'paused', 'fired', 'ended', 'cancelled', 'failed')),
    generation bigint not null default 1,
    last_occurrence timestamptz,
    last_identity text,
    source text not null default 'api' check (source in ('api', 'rules')),
    created_by text not null,
    created_via text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    unique (owner, name)
);
-- Retention reads the schedules that ended first.
create index schedule_ended on tocsin.schedule (updated_at, id)
    where status in ('fired', 'ended', 'cancelled', 'failed');
comment on table tocsin.schedule is
    'Schedules: named recurrences. An active one has one schedule-tick in tocsin.timer. Written '
    'by an apply of rule files, the command line and the functions tocsin.schedule_*.';
comment on column tocsin.schedule.recurrence is
    'Arguments of the recurrence parser (cron, rrule, every or at, with tz), in canonical form.';
comment on column tocsin.schedule.spread is
    'Each fire is delayed by a stable share of this, derived from owner and name.';
comment on column tocsin.schedule.catch_up is
    'What happens with occurrences that were missed: fire the latest, all of them or none.';
comment on column tocsin.schedule."window" is
    'Missed occurrences older than this are not caught up.';
comment on column tocsin.schedule.grace is
    'A fire that is late by no more than this is not a missed one.';
comment on column tocsin.schedule.max_catch_up is
    'Largest number of missed occurrences that are fired.';
comment on column tocsin.schedule.type is 'Type of the event that a fire records.';
comment on column tocsin.schedule.action is 'Action that a fire starts; null for the event alone.';
comment on column tocsin.schedule.status is
    'fired: a single occurrence that is done; ended: a recurrence without further occurrences; '
    'failed: a single occurrence whose run failed.';
comment on column tocsin.schedule.generation is
    'Raised by every edit, so that an older tick is recognised.';
comment on column tocsin.schedule.last_occurrence is
    'Newest occurrence that is done. While a tick is armed, timer.last_nominal_at is ahead of it.';
comment on column tocsin.schedule.last_identity is
    'Wall time and fold of that occurrence, as in timer.last_identity.';
comment on column tocsin.schedule.source is
    'rules: defined by a rule file; api: put by a command or a service.';

create function tocsin.share_tz_version() returns text
language plpgsql volatile
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('tocsin.tz-version', 0));
    -- A new statement, so that it sees a version that was stored while this one waited.
    return (select s.value from tocsin.setting s where s.name = 'tz-version');
end
$$;
comment on function tocsin.share_tz_version is
    'The tz version of the clock, locked against a change until the transaction of the caller '
    'ends. Called by edits of schedules that depend on a timezone; null before the first clock.';

create function tocsin.arm(
    kind text,
    ref text,
    key text,
    fire_at timestamptz,
    payload jsonb default '{}',
    generation bigint default 1
) returns boolean
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    is_new boolean;
begin
    if arm.kind = 'schedule-tick' then
        raise exception 'schedule ticks are armed by their schedule only: put the schedule'
            using errcode = 'TS002';
    end if;
    if not tocsin.is_readable(arm.payload) then
        raise exception 'the payload of timer % is no JSON object, or has a number of more than 4300 digits: '
            'send an object, and such a number as a text', quote_literal(arm.ref) using errcode = 'TS002';
    end if;
    if arm.fire_at not between '0001-01-03 00:00Z' and '9999-12-30 00:00Z' then
        raise exception 'fire_at % is not an instant of the years 1 to 9999: give one', arm.fire_at
            using errcode = 'TS002';
    end if;
    insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload, generation)
    values (arm.kind, arm.ref, arm.key, greatest(arm.fire_at, tocsin.instant()), arm.fire_at,
            arm.payload, arm.generation)
    on conflict on constraint timer_pkey do update
        set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
            generation = excluded.generation, attempts = 0, last_error = null, parked_at = null
    returning (t.xmax = 0) into is_new;
    return is_new;
end
$$;
comment on function tocsin.arm is
    'Arms a timer in the transaction of the caller. (kind, ref, key) is its identity: arming '
    'again moves it. An instant in the past is due at once; nominal_at keeps it. Returns true if '
    'the timer is new. Ticks are armed by their schedule only.';

create function tocsin.cancel(kind text, ref text, key text default '') returns boolean
language plpgsql volatile
set enable_seqscan = off
as $$
begin
    if cancel.kind = 'schedule-tick' then
        raise exception 'schedule ticks are cancelled with their schedule: cancel the schedule'
            using errcode = 'TS002';
    end if;
    delete from tocsin.timer t where t.kind = cancel.kind and t.ref = cancel.ref and t.key = cancel.key;
    return found;
end
$$;
comment on function tocsin.cancel is
    'Cancels one timer in the transaction of the caller. Waits for a fire in progress. Returns '
    'false if there is no such timer: it has fired, or it was never armed.';

create function tocsin.cancel_all(ref text, kind text default null) returns bigint
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    cancelled bigint;
begin
    if cancel_all.kind = 'schedule-tick' then
        raise exception 'schedule ticks are cancelled with their schedule: cancel the schedule'
            using errcode = 'TS002';
    end if;
    with victims as (
        select t.kind, t.ref, t.key
        from tocsin.timer t
        where t.ref = cancel_all.ref
          and t.kind in ('for-sustain', 'runbook-wait', 'watchdog')
          and (cancel_all.kind is null or t.kind = cancel_all.kind)
        order by t.kind, t.ref, t.key
        for update
    )
    delete from tocsin.timer t using victims v where (t.kind, t.ref, t.key) = (v.kind, v.ref, v.key);
    get diagnostics cancelled = row_count;
    return cancelled;
end
$$;
comment on function tocsin.cancel_all is
    'Cancels the timers of one ref, of one kind or of all kinds but schedule-tick. Returns how '
    'many.';
