-- Series: the datapoints of producers, and the newest value of each series.

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
comment on table tocsin.datapoint is
    'Datapoints of producers in the order of the data stream, in one partition per UTC day of '
    'arrival. Written by the worker that holds the partition of the lane.';
comment on column tocsin.datapoint.arrived_at is
    'When the data stream stored it. Rules and deadlines use this instant.';
comment on column tocsin.datapoint.position is
    'Position inside a message with several datapoints, from 0.';
comment on column tocsin.datapoint.ts is
    'Time that the producer gave. It orders the values of a series.';

-- A partition is created on its own and then attached, so that no insert waits.
create function tocsin.extend_datapoints(first date, last date) returns integer
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    day date;
    part text;
    added integer := 0;
begin
    if last - first > 366 then
        raise exception 'from % to % is more than a year: make fewer partitions at once', first, last
            using errcode = 'TS002';
    end if;
    perform pg_advisory_xact_lock(hashtext('tocsin.extend_datapoints'));
    for day in select generate_series(first, last, interval '1 day')::date loop
        part := 'datapoint_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('tocsin.' || quote_ident(part)) is not null;
        execute format('create table tocsin.%I (like tocsin.datapoint including defaults including constraints'
                       ' including indexes)', part);
        execute format('alter table tocsin.datapoint attach partition tocsin.%I for values from (%L) to (%L)', part,
                       to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00', to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
        added := added + 1;
    end loop;
    return added;
end
$$;
comment on function tocsin.extend_datapoints is
    'Creates the partitions of tocsin.datapoint for the UTC days from first to last. Returns how '
    'many were added. Called by workers; runs as the owner, because services own no table.';
revoke all on function tocsin.extend_datapoints from public;

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
    freshness text not null default 'fresh' check (freshness in ('fresh', 'stale')),
    stale_since timestamptz,
    handled_stale_since timestamptz,
    version bigint not null default 1,
    primary key (owner, key)
) with (fillfactor = 70);
create index current_value_stale on tocsin.current_value (owner, stale_since) where freshness = 'stale';
comment on table tocsin.current_value is
    'One row per series: its newest value and whether it is stale. Written by workers; the clock '
    'marks a series as stale.';
comment on column tocsin.current_value.partition is
    'Partition of the data lane that the owner belongs to.';
comment on column tocsin.current_value.value is 'Value with the newest ts.';
comment on column tocsin.current_value.arrived_at is
    'Newest arrival, even if its ts is older than that of the value.';
comment on column tocsin.current_value.stale_since is
    'Deadline that passed without a datapoint; null if fresh.';
comment on column tocsin.current_value.handled_stale_since is
    'Value of stale_since that the rules have processed. The clock marks a series first; the '
    'rules learn of it through the stream.';
comment on column tocsin.current_value.version is
    'Raised by every change, to detect a concurrent one.';
