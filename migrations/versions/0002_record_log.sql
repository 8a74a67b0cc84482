-- The record log: events and action steps share one gapless sequence in commit order.

-- One row. `epoch` fences the clock (I2); `floor` is the least head after a hole was accepted.
create table tocsin.log_head (
    only_row boolean primary key default true check (only_row),
    epoch bigint not null default 0,
    floor bigint not null default 0,
    partition_size bigint not null default 1000000 check (partition_size > 0),
    holder text,
    holder_pid integer,
    holder_backend_start timestamptz,
    taken_at timestamptz
);
insert into tocsin.log_head default values;

-- One row per committed append. Its maximum is the head of the log: an index look-up that stays quick under a
-- held snapshot, where a counter row would grow a chain of dead versions (docs/decisions/0001).
create table tocsin.log_commit (
    last_seq bigint primary key,
    first_seq bigint not null,
    recorded_at timestamptz not null,
    epoch bigint
);

create table tocsin.event (
    seq bigint primary key,
    id uuid not null,
    ts timestamptz not null,
    recorded_at timestamptz not null,
    origin text not null check (origin in ('caught', 'caused', 'derived', 'scheduled')),
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

create table tocsin.action_step (
    seq bigint primary key,
    id uuid not null,
    action_id uuid not null,
    name text not null check (length(name) between 1 and 128),
    owner text not null default '' check (length(owner) <= 128),
    step integer not null,
    attempt integer not null,
    state text not null check (state in ('due', 'completed', 'failed', 'cancelled')),
    recorded_at timestamptz not null,
    correlation_id uuid not null,
    source_event_id uuid,
    result jsonb not null default '{}' check (octet_length(result::text) <= 229376)
) partition by range (seq);

-- Make the partitions up to `ahead` beyond the head. Made stand-alone and attached, so that no insert waits.
-- Returns how many log ranges were added.
create function tocsin.extend_log(ahead integer default 2) returns integer
language plpgsql volatile
as $$
declare
    size bigint;
    head bigint;
    start bigint;
    part text;
    log_table text;
    added integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('tocsin.extend_log'));
    select h.partition_size, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into size, head from tocsin.log_head h;
    for range_number in (head / size) .. (head / size + ahead) loop
        start := range_number * size;
        foreach log_table in array array['event', 'action_step'] loop
            part := format('%s_%s', log_table, start);
            continue when to_regclass('tocsin.' || quote_ident(part)) is not null;
            execute format(
                'create table tocsin.%I (like tocsin.%I including defaults including constraints including indexes)',
                part, log_table);
            execute format('alter table tocsin.%I add unique (id)', part);
            execute format('alter table tocsin.%I attach partition tocsin.%I for values from (%s) to (%s)',
                           log_table, part, start, start + size);
            added := added + 1;
        end loop;
    end loop;
    return added / 2;
end
$$;
select tocsin.extend_log();

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

-- The only way into the record log, and the last thing a transaction does before it commits. The lock is kept
-- until then, so seq order is commit order and a rollback leaves no gap. With `expected_epoch` it also proves
-- that the caller still leads: otherwise TS001, and nothing of the transaction survives. Returns the last seq.
create function tocsin.append(
    events tocsin.event_input[] default '{}',
    steps tocsin.step_input[] default '{}',
    expected_epoch bigint default null
) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    current_epoch bigint;
    head bigint;
    at timestamptz;
    records integer := cardinality(events) + cardinality(steps);
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
    if records = 0 then
        return head;
    end if;
    at := tocsin.instant();
    insert into tocsin.event (seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at,
                              alarm_id, severity, source_event_id, correlation_id, payload, epoch)
    select head + e.position, e.id, e.ts, at, e.origin, e.type, coalesce(e.schedule, ''), coalesce(e.rule, ''),
           coalesce(e.action, ''), coalesce(e.owner, ''), e.fire_at, e.alarm_id, e.severity,
           e.source_event_id, coalesce(e.correlation_id, e.id), coalesce(e.payload, '{}'), expected_epoch
    from unnest(events) with ordinality as e (id, ts, origin, type, schedule, rule, action, owner, fire_at,
                                              alarm_id, severity, source_event_id, correlation_id, payload, position);
    insert into tocsin.action_step (seq, id, action_id, name, owner, step, attempt, state, recorded_at,
                                    correlation_id, source_event_id, result)
    select head + cardinality(events) + s.position, s.id, s.action_id, s.name, coalesce(s.owner, ''), s.step,
           s.attempt, s.state, at, s.correlation_id, s.source_event_id, coalesce(s.result, '{}')
    from unnest(steps) with ordinality as s (id, action_id, name, owner, step, attempt, state, correlation_id,
                                             source_event_id, result, position);
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    values (head + records, head + 1, at, expected_epoch);
    perform pg_notify('tocsin_log', '');
    return head + records;
end
$$;

-- Raise the epoch for a new leader, if it is still the one that was read (0 rows: somebody else was quicker).
-- The former leader's session is ended first: frozen between append and commit, it would hold the log.
create function tocsin.take_over(expected_epoch bigint, new_holder text) returns bigint
language plpgsql volatile
as $$
declare
    taken bigint;
begin
    perform pg_terminate_backend(a.pid, 1000)
    from tocsin.log_head h
    join pg_stat_activity a on a.pid = h.holder_pid and a.backend_start = h.holder_backend_start
    where h.epoch = expected_epoch and a.pid <> pg_backend_pid();
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    update tocsin.log_head
    set epoch = epoch + 1, holder = new_holder, holder_pid = pg_backend_pid(),
        holder_backend_start = (select backend_start from pg_stat_activity where pid = pg_backend_pid()),
        taken_at = tocsin.instant()
    where epoch = expected_epoch
    returning epoch into taken;
    return taken;
end
$$;

revoke all on tocsin.event, tocsin.action_step, tocsin.log_commit, tocsin.log_head from public;
revoke all on function tocsin.append, tocsin.take_over, tocsin.extend_log from public;
