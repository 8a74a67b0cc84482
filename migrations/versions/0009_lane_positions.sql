-- Workers by age, streams that are made anew, and a partition of `datapoint` for each day of arrival.

alter table tocsin.ingest_worker add column since timestamptz not null;

alter table tocsin.ingest_partition
    -- When the stream was made: sequences of another stream mean something else.
    add column incarnation text,
    -- The last sequence of a sourced message: after its stream was rebuilt, sourced messages come again.
    add column last_source_seq bigint not null default 0;

-- Make the partitions of `datapoint` for the days from `first` to `last`, both included, in UTC. Made stand-alone and
-- attached, so that no insert waits. Returns how many were added. Runs with the rights of its owner: services own no table.
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

revoke all on function tocsin.extend_datapoints from public;
