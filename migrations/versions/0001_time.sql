-- Time: the only clock SQL may read, the timer working set, schedules and the audit of people's acts.

create schema tocsin;

-- The only SQL that reads a clock. A test sets `tocsin.now` to move it.
create function tocsin.instant() returns timestamptz
language sql volatile parallel safe
as $$
    select coalesce(nullif(current_setting('tocsin.now', true), '')::timestamptz, clock_timestamp())
$$;

-- Facts about this database that outlive every process, such as the tz version its timers were computed with.
create table tocsin.setting (
    name text primary key,
    value text not null
);

create table tocsin.schedule (
    id uuid primary key default gen_random_uuid(),
    owner text not null default '' check (length(owner) <= 128),
    name text not null check (length(name) between 1 and 128),
    -- Keyword arguments of timers.recurrence.parse, in canonical form.
    recurrence jsonb not null,
    spread interval not null default '0' check (spread >= '0'),
    catch_up text not null default 'latest' check (catch_up in ('latest', 'all', 'none')),
    "window" interval check ("window" >= '0'),
    grace interval check (grace >= '0'),
    max_catch_up integer not null default 100 check (max_catch_up between 1 and 10000),
    type text not null default 'schedule-fired' check (type ~ '^[A-Za-z0-9_-]{1,128}$'),
    -- As large as an event's: what cannot be fired is refused when it is stored.
    payload jsonb not null default '{}' check (octet_length(payload::text) <= 229376),
    action text check (length(action) between 1 and 128),
    status text not null default 'active'
        check (status in ('active', 'paused', 'fired', 'ended', 'cancelled', 'failed')),
    generation bigint not null default 1,
    -- The newest occurrence that is done; while a tick is armed, the tick's own column is ahead of it.
    last_occurrence timestamptz,
    source text not null default 'api' check (source in ('api', 'rules')),
    created_by text not null,
    created_via text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    unique (owner, name)
);

-- The working set: one row per pending fire, and nothing else. A consumed row leaves no trace here.
create table tocsin.timer (
    kind text not null check (kind in ('schedule-tick', 'for-sustain', 'runbook-wait', 'watchdog')),
    ref text not null check (length(ref) between 1 and 256),
    key text not null default '' check (length(key) <= 256),
    -- Instants that every client can read back: one row that cannot be read would stop the scan of all.
    fire_at timestamptz not null check (fire_at between '0001-01-03 00:00Z' and '9999-12-30 00:00Z'),
    nominal_at timestamptz not null check (nominal_at between '0001-01-03 00:00Z' and '9999-12-30 00:00Z'),
    last_nominal_at timestamptz,
    generation bigint not null default 1,
    payload jsonb not null default '{}',
    attempts integer not null default 0,
    last_error text,
    parked_at timestamptz,
    primary key (kind, ref, key)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05
);

-- `ref` makes the scan's mark exact within one instant: a burst on one instant never walks its own corpses.
create index timer_due on tocsin.timer (kind, fire_at, ref) where parked_at is null;

create table tocsin.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    who text not null,
    via text not null,
    verb text not null,
    kind text not null,
    owner text not null default '',
    name text not null,
    old jsonb,
    new jsonb
);
create index audit_subject on tocsin.audit (kind, name, id);

-- Arm a timer inside the caller's transaction. Arming again moves it: (kind, ref, key) is the identity.
-- `fire_at` in the past is due at once; `nominal_at` keeps what was asked for. True if it is new.
create function tocsin.arm(
    kind text,
    ref text,
    key text,
    fire_at timestamptz,
    payload jsonb default '{}',
    generation bigint default 1
) returns boolean
language plpgsql volatile
as $$
declare
    is_new boolean;
begin
    if arm.kind = 'schedule-tick' then
        raise exception 'schedule ticks are armed by their schedule only: put the schedule'
            using errcode = 'TS002';
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

-- Cancel one timer inside the caller's transaction. False means that it was not there: the clock won, or
-- it was never armed. A fire in progress holds the row, so this waits for its outcome.
create function tocsin.cancel(kind text, ref text, key text default '') returns boolean
language plpgsql volatile
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

-- Cancel every timer of one entity, of one kind or of all kinds but ticks. Returns how many.
create function tocsin.cancel_all(ref text, kind text default null) returns bigint
language plpgsql volatile
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
