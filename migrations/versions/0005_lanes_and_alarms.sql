-- Lanes, datapoints and alarms: what workers read, how far they have read it, and what they concluded.

-- How far each partition of a lane has been read. `last_seq` moves in the transaction of what a batch causes, so a
-- message counts exactly once. `complete_until`: everything that arrived at or before it has been read; no verdict goes
-- beyond it. One worker at a time: `holder`, until `held_until`.
create table tocsin.ingest_partition (
    lane text not null check (lane in ('record', 'data')),
    partition integer not null check (partition >= 0),
    last_seq bigint not null default 0,
    complete_until timestamptz,
    holder text,
    held_until timestamptz,
    primary key (lane, partition)
) with (fillfactor = 50);

-- Workers that are alive, so that each takes a fair share of the partitions.
create table tocsin.ingest_worker (
    holder text primary key,
    seen_until timestamptz not null
) with (fillfactor = 50);

-- Observed datapoints, in the order of the stream. `ts` is the producer's word, `arrived_at` is what decides.
create table tocsin.datapoint (
    arrived_at timestamptz not null,
    stream_seq bigint not null,
    position integer not null,
    owner text not null,
    key text not null,
    ts timestamptz not null,
    value jsonb not null,
    labels jsonb,
    primary key (arrived_at, stream_seq, position)
) partition by range (arrived_at);
create index datapoint_series on tocsin.datapoint (owner, key, arrived_at);

-- The newest value of each series, by `ts`; its arrival is the newest arrival, whatever the producer's clock said.
create table tocsin.current_value (
    owner text not null check (length(owner) <= 128),
    key text not null check (length(key) between 1 and 256),
    partition integer not null,
    value jsonb not null,
    ts timestamptz not null,
    labels jsonb not null default '{}',
    arrived_at timestamptz not null,
    stream_seq bigint not null,
    first_arrived_at timestamptz not null,
    datapoint_type text,
    freshness text not null default 'fresh' check (freshness in ('fresh', 'stale')),
    stale_since timestamptz,
    -- The last staleness that the rules have heard of: a verdict of the clock reaches them by the stream.
    heard_stale_since timestamptz,
    version bigint not null default 1,
    primary key (owner, key)
) with (fillfactor = 70);
create index current_value_stale on tocsin.current_value (owner, stale_since) where freshness = 'stale';

-- What the clock and the workers conclude from arrivals: a value went stale, is fresh again, a system's health.
create table tocsin.datapoint_calculated (
    seq bigint primary key,
    id uuid not null,
    owner text not null check (length(owner) <= 128),
    key text not null check (length(key) between 1 and 256),
    ts timestamptz not null,
    recorded_at timestamptz not null,
    verdict text not null check (verdict in ('stale', 'fresh', 'health')),
    payload jsonb not null check (octet_length(payload::text) <= 229376),
    correlation_id uuid not null,
    epoch bigint
) partition by range (seq);

create table tocsin.rule_state (
    event_rule text not null,
    owner text not null,
    lane text not null,
    partition integer not null,
    phase text not null default 'ok' check (phase in ('ok', 'pending', 'open', 'clearing')),
    alarm_id uuid,
    state jsonb not null default '{}',
    version bigint not null default 1,
    primary key (event_rule, owner),
    foreign key (lane, partition) references tocsin.ingest_partition
) with (fillfactor = 70);

-- A held incident. Acknowledgement and snooze are facts of their own: neither changes the state.
create table tocsin.alarm (
    id uuid primary key,
    event_rule text not null,
    owner text not null default '',
    state text not null check (state in ('pending', 'open', 'resolved')),
    severity smallint not null,
    since timestamptz not null,
    opened_at timestamptz,
    resolved_at timestamptz,
    resolved_reason text,
    payload jsonb not null default '{}',
    source_event_id uuid,
    correlation_id uuid not null,
    acknowledged_at timestamptz,
    acknowledged_by text,
    acknowledged_note text,
    snoozed_until timestamptz,
    snoozed_by text,
    version bigint not null default 1
) with (fillfactor = 70);
create unique index alarm_held on tocsin.alarm (event_rule, owner) where state in ('pending', 'open');
create index alarm_newest on tocsin.alarm (since desc);

-- Keys of caught events that were appended already: the same key again is the same event.
create table tocsin.ingest_event (
    key text primary key check (length(key) between 1 and 256),
    event_id uuid not null,
    at timestamptz not null
);

create or replace function tocsin.extend_log(ahead integer default 2) returns integer
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
        foreach log_table in array array['event', 'action_step', 'datapoint_calculated'] loop
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
    return (added + 2) / 3;
end
$$;
select tocsin.extend_log();

create type tocsin.calculated_input as (
    id uuid,
    owner text,
    key text,
    ts timestamptz,
    verdict text,
    correlation_id uuid,
    payload jsonb
);

-- The same as before, with calculated datapoints: they take the last seqs of their transaction.
drop function tocsin.append;
create function tocsin.append(
    events tocsin.event_input[] default '{}',
    steps tocsin.step_input[] default '{}',
    expected_epoch bigint default null,
    calculated tocsin.calculated_input[] default '{}'
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
        insert into tocsin.datapoint_calculated (seq, id, owner, key, ts, recorded_at, verdict, payload,
                                                 correlation_id, epoch)
        select head + cardinality(events) + cardinality(steps) + c.position, c.id, c.owner, c.key, c.ts, at,
               c.verdict, coalesce(c.payload, '{}'), coalesce(c.correlation_id, c.id), expected_epoch
        from unnest(calculated) with ordinality as c (id, owner, key, ts, verdict, correlation_id, payload, position);
    end if;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    values (head + records, head + 1, at, expected_epoch);
    perform pg_notify('tocsin_log', '');
    return head + records;
end
$$;

revoke all on tocsin.datapoint_calculated from public;
revoke all on function tocsin.append from public;

-- `explain` and the alarms' history find the events of an alarm; only such rows are in the index.
create index event_of_alarm on tocsin.event (alarm_id, seq) where alarm_id is not null;
