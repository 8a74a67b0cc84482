-- The record log: events, action steps and calculated datapoints share one gapless sequence in
-- commit order. Only tocsin.append writes it (docs/decisions/0008).

create table tocsin.log_head (
    only_row boolean primary key default true check (only_row),
    epoch bigint not null default 0,
    floor bigint not null default 0,
    partition_size bigint not null default 1000000 check (partition_size > 0),
    holder text,
    holder_pid integer,
    holder_backend_start timestamptz,
    taken_at timestamptz,
    horizon bigint not null default 1
);
insert into tocsin.log_head default values;
comment on table tocsin.log_head is
    'One row: the leading clock and the bounds of the record log. Written by tocsin.raise_epoch, '
    'tocsin.adopt and tocsin.raise_horizon.';
comment on column tocsin.log_head.epoch is
    'Number of the current leadership. Every takeover raises it; tocsin.append rejects an older '
    'one.';
comment on column tocsin.log_head.floor is
    'Smallest seq that the head of the log may have. tocsin.adopt raises it to the end of the '
    'stream.';
comment on column tocsin.log_head.partition_size is
    'Number of seqs in one partition of a log table.';
comment on column tocsin.log_head.holder is 'Name of the clock that leads.';
comment on column tocsin.log_head.holder_pid is
    'Server process of the leading clock. A takeover terminates it, so that a frozen leader '
    'cannot keep the lock of the log.';
comment on column tocsin.log_head.holder_backend_start is
    'Start of that server process. It tells the process from a later one with the same pid.';
comment on column tocsin.log_head.horizon is
    'First seq that the log still promises to have. Retention raises it before it drops the '
    'partitions below it, so readers ignore what a crash leaves of them.';

-- The head of the log is the maximum of this table, an index look-up. A counter row would grow a
-- chain of dead versions while any snapshot is held (docs/decisions/0001).
create table tocsin.log_commit (
    last_seq bigint primary key,
    first_seq bigint not null,
    recorded_at timestamptz not null,
    epoch bigint
);
comment on table tocsin.log_commit is
    'One row per committed append; the largest last_seq is the head of the record log. Written '
    'by tocsin.append.';
comment on column tocsin.log_commit.epoch is
    'Epoch that the append proved; null for a worker or a command.';

create table tocsin.log_gap (
    from_seq bigint not null check (from_seq > 0),
    until_seq bigint not null check (until_seq >= from_seq),
    reason text not null,
    who text not null,
    at timestamptz not null,
    constraint log_gap_apart exclude using gist (int8range(from_seq, until_seq, '[]') with &&)
        deferrable initially deferred
);
comment on table tocsin.log_gap is
    'Gaps in the record log that an operator accepted as lost. The publisher fills them with '
    'tombstones and stops at any other gap (docs/decisions/0006, 0007). Written by tocsin.adopt, '
    'tocsin.adopt_inside and tocsin.record_gap.';
comment on column tocsin.log_gap.until_seq is 'Last seq of the gap.';

create table tocsin.event (
    seq bigint primary key,
    id uuid not null,
    ts timestamptz not null,
    recorded_at timestamptz not null,
    origin text not null check (origin in ('external', 'caused', 'derived', 'scheduled')),
    type text not null check (type ~ '^[A-Za-z0-9_-]{1,128}$'),
    schedule text not null default '' check (length(schedule) <= 128),
    rule text not null default '' check (length(rule) <= 128),
    action text not null default '' check (length(action) <= 128),
    owner text not null default '' check (length(owner) <= 128),
    fire_at timestamptz,
    alarm_id uuid,
    severity smallint,
    source_event_id uuid,
    correlation_id uuid not null,
    payload jsonb not null check (octet_length(payload::text) <= 229376),
    epoch bigint
) partition by range (seq);
-- Partial indexes: only the few events that `explain`, alarm histories and retention search for.
create index event_missed on tocsin.event (schedule, seq) where type = 'schedule-missed';
create index event_of_alarm on tocsin.event (alarm_id, seq) where alarm_id is not null;
create index event_of_rule on tocsin.event (rule, seq) where rule <> '';
comment on table tocsin.event is
    'Records that something happened. Written by tocsin.append, published to the record stream '
    'by the publisher, read with `tocsin events`.';
comment on column tocsin.event.seq is
    'Position in the record log, in commit order; equal to the sequence in the record stream.';
comment on column tocsin.event.ts is
    'Nominal time: the instant that the event is for, however late it was recorded.';
comment on column tocsin.event.recorded_at is 'When it was appended, by the clock of the database.';
comment on column tocsin.event.origin is
    'scheduled (a schedule), derived (an event_rule), caused (an action or an operator) or '
    'external (sent by a producer).';
comment on column tocsin.event.schedule is 'Name of the schedule that fired; empty if none did.';
comment on column tocsin.event.rule is
    'Name of the event_rule that derived the event; empty if none did.';
comment on column tocsin.event.action is
    'Name of the action that emitted the event; empty if none did.';
comment on column tocsin.event.fire_at is 'When a schedule was due: nominal time plus spread.';
comment on column tocsin.event.source_event_id is 'Event that led to this one.';
comment on column tocsin.event.correlation_id is 'Shared by all records that one cause led to.';
comment on column tocsin.event.epoch is
    'Epoch of the clock that wrote it; null for a worker or a command.';

create table tocsin.action_step (
    seq bigint primary key,
    id uuid not null,
    action_id uuid not null,
    name text not null check (length(name) between 1 and 128),
    owner text not null default '' check (length(owner) <= 128),
    step integer not null,
    attempt integer not null,
    state text not null check (
        state in ('due', 'waiting', 'completed', 'failed', 'timed_out', 'cancelled', 'skipped')),
    recorded_at timestamptz not null,
    correlation_id uuid not null,
    source_event_id uuid,
    result jsonb not null default '{}' check (octet_length(result::text) <= 229376)
) partition by range (seq);
-- For `tocsin actions show` and the check in tocsin.report.
create index action_step_of on tocsin.action_step (action_id, seq);
comment on table tocsin.action_step is
    'History of runs: one record per state that a step reached. Written by tocsin.append; the '
    'current state of a run is in tocsin.action. A record with the state due is the message that '
    'a worker performs.';
comment on column tocsin.action_step.action_id is
    'Run that the step belongs to (tocsin.action.id).';
comment on column tocsin.action_step.name is 'Name of the action.';
comment on column tocsin.action_step.step is 'Number of the step in the runbook, from 0.';
comment on column tocsin.action_step.attempt is 'Number of the attempt, from 1.';
comment on column tocsin.action_step.source_event_id is 'Event that started the run.';

create table tocsin.datapoint_calculated (
    seq bigint primary key,
    id uuid not null,
    owner text not null check (length(owner) <= 128),
    key text not null check (length(key) between 1 and 256),
    ts timestamptz not null,
    recorded_at timestamptz not null,
    kind text not null check (kind in ('stale', 'fresh', 'health')),
    payload jsonb not null check (octet_length(payload::text) <= 229376),
    correlation_id uuid not null,
    epoch bigint
) partition by range (seq);
comment on table tocsin.datapoint_calculated is
    'Datapoints that Tocsin derives: a series became stale or fresh, or the health of a system '
    'changed. Written by tocsin.append for the clock (stale) and the workers.';
comment on column tocsin.datapoint_calculated.owner is
    'Owner of the series, or the name of the system.';
comment on column tocsin.datapoint_calculated.ts is
    'Instant that it is for, such as the deadline that passed.';
comment on column tocsin.datapoint_calculated.kind is
    'Kind of calculated datapoint: stale, fresh or health.';

-- A table belongs to the log if it is partitioned and has a seq, so a later migration can add one.
create function tocsin.log_tables() returns text[]
language sql stable
as $$
    select array_agg(c.relname::text order by c.relname)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'seq' and not a.attisdropped
    where c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'p'
$$;
comment on function tocsin.log_tables is
    'Names of the tables that share the sequence of the record log.';

create function tocsin.refuse_direct_write() returns trigger
language plpgsql
as $$
begin
    if (select r.rolsuper
               or (current_setting('search_path') = 'tocsin, pg_temp'
                   and r.oid = (select c.relowner from pg_class c where c.oid = tg_relid))
        from pg_roles r where r.rolname = current_user)
    then
        return null;
    end if;
    raise exception 'tocsin.% is written by functions of tocsin alone: append with tocsin.append', tg_table_name
        using errcode = 'insufficient_privilege';
end
$$;
comment on function tocsin.refuse_direct_write is
    'Trigger function of the log tables: rejects statements of everyone but a superuser and the '
    'functions of Tocsin. Those run as the owner with a search path that no session has, which '
    'tells them from a statement that the owner types.';

-- Row security without a policy for writing rejects the inserts of every role but the owner,
-- whatever that role was granted, and costs the owner nothing. The trigger rejects inserts that the
-- owner types; its WHEN clause spares tocsin.append the function call.
create function tocsin.guard(log_table text) returns void
language plpgsql
as $$
begin
    execute format('alter table tocsin.%I enable row level security', log_table);
    execute format('create policy readable on tocsin.%I for select using (true)', log_table);
    execute format(
        'create trigger guard_insert before insert on tocsin.%I for each statement '
        'when (current_setting(''search_path'') <> ''tocsin, pg_temp'') execute function tocsin.refuse_direct_write()',
        log_table);
    execute format(
        'create trigger guard before update or delete or truncate on tocsin.%I for each statement '
        'execute function tocsin.refuse_direct_write()',
        log_table);
end
$$;
comment on function tocsin.guard is
    'Protects one table of the log, or one of its partitions, against direct writes. Reading '
    'stays a matter of grants.';
revoke all on function tocsin.guard from public;

-- A partition is created on its own and then attached, so that no insert waits. Each partition has
-- guards of its own: a statement on a partition does not run the triggers of its parent.
create function tocsin.extend_log(ahead integer default 2) returns integer
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    size bigint;
    head bigint;
    start bigint;
    part text;
    log_table text;
    is_new boolean;
    added integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('tocsin.extend_log'));
    select h.partition_size, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into size, head from tocsin.log_head h;
    for range_number in (head / size) .. (head / size + ahead) loop
        start := range_number * size;
        is_new := false;
        foreach log_table in array tocsin.log_tables() loop
            part := format('%s_%s', log_table, start);
            continue when to_regclass('tocsin.' || quote_ident(part)) is not null;
            execute format(
                'create table tocsin.%I (like tocsin.%I including defaults including constraints including indexes)',
                part, log_table);
            execute format('alter table tocsin.%I add unique (id)', part);
            perform tocsin.guard(part);
            execute format('alter table tocsin.%I attach partition tocsin.%I for values from (%s) to (%s)',
                           log_table, part, start, start + size);
            is_new := true;
        end loop;
        added := added + is_new::integer;
    end loop;
    return added;
end
$$;
comment on function tocsin.extend_log is
    'Creates the partitions of the log tables up to the given number of ranges beyond the head. '
    'Returns how many ranges were added. Called by the clock.';
revoke all on function tocsin.extend_log from public;

create type tocsin.event_input as (
    id uuid,
    ts timestamptz,
    origin text,
    type text,
    schedule text,
    rule text,
    action text,
    owner text,
    fire_at timestamptz,
    alarm_id uuid,
    severity smallint,
    source_event_id uuid,
    correlation_id uuid,
    payload jsonb
);
comment on type tocsin.event_input is
    'An event to append; the columns of tocsin.event that the caller gives.';

create type tocsin.step_input as (
    id uuid,
    action_id uuid,
    name text,
    owner text,
    step integer,
    attempt integer,
    state text,
    correlation_id uuid,
    source_event_id uuid,
    result jsonb
);
comment on type tocsin.step_input is
    'An action step to append; the columns of tocsin.action_step that the caller gives.';

create type tocsin.calculated_input as (
    id uuid,
    owner text,
    key text,
    ts timestamptz,
    kind text,
    correlation_id uuid,
    payload jsonb
);
comment on type tocsin.calculated_input is
    'A calculated datapoint to append; the columns of tocsin.datapoint_calculated that the '
    'caller gives.';

create type tocsin.member_observation_input as (
    owner text,
    at timestamptz,
    what text,
    subject text,
    severity smallint,
    since timestamptz,
    keys text[]
);
comment on type tocsin.member_observation_input is
    'An observation about a member of a system; the columns of tocsin.member_observation without '
    'the id.';

-- The advisory lock is held until the commit, so seq order is commit order and a rollback leaves no
-- gap. tocsin.record_observations and tocsin.system_health come with 0009_health: PL/pgSQL resolves
-- them when the function runs.
create function tocsin.append(
    events tocsin.event_input[] default '{}',
    steps tocsin.step_input[] default '{}',
    expected_epoch bigint default null,
    calculated tocsin.calculated_input[] default '{}',
    observations tocsin.member_observation_input[] default null
) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    current_epoch bigint;
    head bigint;
    at timestamptz;
    records integer := cardinality(events) + cardinality(steps) + cardinality(calculated);
begin
    -- An older snapshot would see an older epoch and an older head.
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the record log is appended to in read committed transactions, not in %',
            current_setting('transaction_isolation') using errcode = 'TS003';
    end if;
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    -- A new statement, so a new snapshot: it sees what the previous holder of the lock committed.
    select h.epoch, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into current_epoch, head from tocsin.log_head h;
    if expected_epoch is not null and expected_epoch <> current_epoch then
        raise exception 'deposed: epoch % was superseded by %', expected_epoch, current_epoch
            using errcode = 'TS001';
    end if;
    if exists (select from tocsin.system_health) then
        perform tocsin.record_observations(events, calculated, observations);
    end if;
    if records = 0 then
        return head;
    end if;
    at := tocsin.instant();
    if cardinality(events) > 0 then
        insert into tocsin.event (seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at,
                                  alarm_id, severity, source_event_id, correlation_id, payload, epoch)
        select head + e.position, e.id, e.ts, at, e.origin, e.type, coalesce(e.schedule, ''), coalesce(e.rule, ''),
               coalesce(e.action, ''), coalesce(e.owner, ''), e.fire_at, e.alarm_id, e.severity,
               e.source_event_id, coalesce(e.correlation_id, e.id), coalesce(e.payload, '{}'), expected_epoch
        from unnest(events) with ordinality as e (id, ts, origin, type, schedule, rule, action, owner, fire_at,
                                                  alarm_id, severity, source_event_id, correlation_id, payload, position);
    end if;
    if cardinality(steps) > 0 then
        insert into tocsin.action_step (seq, id, action_id, name, owner, step, attempt, state, recorded_at,
                                        correlation_id, source_event_id, result)
        select head + cardinality(events) + s.position, s.id, s.action_id, s.name, coalesce(s.owner, ''), s.step,
               s.attempt, s.state, at, s.correlation_id, s.source_event_id, coalesce(s.result, '{}')
        from unnest(steps) with ordinality as s (id, action_id, name, owner, step, attempt, state, correlation_id,
                                                 source_event_id, result, position);
    end if;
    if cardinality(calculated) > 0 then
        insert into tocsin.datapoint_calculated (seq, id, owner, key, ts, recorded_at, kind, payload,
                                                 correlation_id, epoch)
        select head + cardinality(events) + cardinality(steps) + c.position, c.id, c.owner, c.key, c.ts, at,
               c.kind, coalesce(c.payload, '{}'), coalesce(c.correlation_id, c.id), expected_epoch
        from unnest(calculated) with ordinality as c (id, owner, key, ts, kind, correlation_id, payload, position);
    end if;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    values (head + records, head + 1, at, expected_epoch);
    perform pg_notify('tocsin_log', '');
    return head + records;
end
$$;
comment on function tocsin.append is
    'Appends records to the record log; the only way to write it. Call it last in the '
    'transaction: it holds the lock of the log until the commit. Returns the last seq. With '
    'expected_epoch it raises TS001 if another clock has taken over. Stores the observations about '
    'members of systems; if observations is null, it derives them from the records.';
revoke all on function tocsin.append from public;

create function tocsin.raise_epoch(expected_epoch bigint, new_holder text, pid integer, backend_start timestamptz)
returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    taken bigint;
begin
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    update tocsin.log_head h
    set epoch = h.epoch + 1, holder = new_holder, holder_pid = pid, holder_backend_start = backend_start,
        taken_at = tocsin.instant()
    where h.epoch = expected_epoch
    returning h.epoch into taken;
    return taken;
end
$$;
comment on function tocsin.raise_epoch is
    'Writing part of tocsin.take_over: log_head belongs to the log, so it runs as the owner.';
revoke all on function tocsin.raise_epoch from public;

-- Runs as the caller, who may terminate sessions of the same role only. The session of the former
-- leader goes first: frozen between append and commit, it would keep the lock of the log.
create function tocsin.take_over(expected_epoch bigint, new_holder text) returns bigint
language plpgsql volatile
as $$
begin
    perform pg_terminate_backend(a.pid, 1000)
    from tocsin.log_head h
    join pg_stat_activity a on a.pid = h.holder_pid and a.backend_start = h.holder_backend_start
    where h.epoch = expected_epoch and a.pid <> pg_backend_pid();
    return tocsin.raise_epoch(
        expected_epoch, new_holder, pg_backend_pid(),
        (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()));
end
$$;
comment on function tocsin.take_over is
    'Makes the caller the leading clock: terminates the session of the former leader and raises '
    'the epoch. Returns the new epoch, or null if another clock was faster.';
revoke all on function tocsin.take_over from public;

revoke all on tocsin.log_head, tocsin.log_commit, tocsin.log_gap, tocsin.event, tocsin.action_step,
    tocsin.datapoint_calculated from public;
select tocsin.guard('log_head');
select tocsin.guard('log_commit');
select tocsin.guard('log_gap');
select tocsin.guard('event');
select tocsin.guard('action_step');
select tocsin.guard('datapoint_calculated');
select tocsin.extend_log();
