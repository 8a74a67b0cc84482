-- Lanes: how far workers have read each stream, and which worker reads which partition.

create table tocsin.lane_partition (
    lane text not null check (lane in ('record', 'data')),
    partition integer not null check (partition >= 0),
    last_seq bigint not null default 0,
    watermark timestamptz,
    holder text,
    held_until timestamptz,
    incarnation text,
    last_source_seq bigint not null default 0,
    last_stored_at timestamptz,
    last_gap_at timestamptz,
    canary_error text,
    primary key (lane, partition)
) with (fillfactor = 50);
comment on table tocsin.lane_partition is
    'Position of each partition of each lane. It moves in the transaction of the effects of a '
    'batch, so every message counts exactly once. Written by the worker that holds the '
    'partition.';
comment on column tocsin.lane_partition.lane is
    'record: the record stream; data: the datapoints of producers, partitioned by owner.';
comment on column tocsin.lane_partition.last_seq is 'Last stream sequence that was read.';
comment on column tocsin.lane_partition.watermark is
    'Watermark: everything that arrived up to this instant has been read. No deadline after it '
    'fires. In the data lane it is the arrival of a message.';
comment on column tocsin.lane_partition.holder is
    'Worker that reads the partition; null if none does.';
comment on column tocsin.lane_partition.held_until is
    'End of the lease of the holder. Then another worker may take the partition.';
comment on column tocsin.lane_partition.last_stored_at is
    'When the server stored the message at last_seq. A stream that lost its end and grew again has '
    'another message there.';
comment on column tocsin.lane_partition.incarnation is
    'When the stream was created. The sequences of a recreated stream are not comparable.';
comment on column tocsin.lane_partition.last_source_seq is
    'Last record seq among the messages that the data stream sources from the record stream. '
    'After a stream is rebuilt they arrive again, and the worker skips them.';
comment on column tocsin.lane_partition.last_gap_at is
    'Start of the newest arrival gap of the partition; null if there was none.';
comment on column tocsin.lane_partition.canary_error is
    'Why the data stream did not accept the last canary; null if it did.';

create table tocsin.arrival_gap (
    partition integer not null,
    began_at timestamptz not null,
    ended_at timestamptz not null check (ended_at > began_at),
    primary key (partition, began_at)
);
-- Retention reads the oldest gaps first.
create index arrival_gap_ended on tocsin.arrival_gap (ended_at, partition);
comment on table tocsin.arrival_gap is
    'Intervals in which no message arrived in a partition of the data stream, not even a canary: '
    'producers may have been unable to publish. They extend the deadlines of watched series. '
    'Written by the worker that holds the partition, with the position of the message that ended '
    'the gap.';
comment on column tocsin.arrival_gap.began_at is 'Arrival of the last message before the gap.';
comment on column tocsin.arrival_gap.ended_at is 'Arrival of the first message after the gap.';

-- In UTC a day has 24 hours, so that the lengths of gaps are added exactly.
create function tocsin.deadline_after_gaps(in_partition integer, arrived_at timestamptz, within_us bigint)
returns timestamptz
language plpgsql stable parallel safe
set timezone = 'UTC'
as $$
declare
    deadline timestamptz := arrived_at + within_us * interval '1 microsecond';
    is_first boolean := true;
    gap record;
begin
    for gap in
        select g.began_at, g.ended_at
        from tocsin.arrival_gap g
        where g.partition = in_partition and g.began_at >= arrived_at
        order by g.began_at
    loop
        exit when gap.began_at >= deadline;
        deadline := case when is_first then gap.ended_at + within_us * interval '1 microsecond'
                         else deadline + (gap.ended_at - gap.began_at) end;
        is_first := false;
    end loop;
    return deadline;
end
$$;
comment on function tocsin.deadline_after_gaps is
    'The deadline of a series, extended by the arrival gaps of its partition. '
    'rules/alarms/staleness.py defines it.';

create function tocsin.series_deadline(p tocsin.lane_partition, arrived_at timestamptz, within_us bigint)
returns timestamptz
language sql stable parallel safe
return case when p.last_gap_at >= arrived_at then tocsin.deadline_after_gaps(p.partition, arrived_at, within_us)
            else arrived_at + within_us * interval '1 microsecond' end;
comment on function tocsin.series_deadline is
    'The instant at which a series becomes stale if nothing arrives: its last arrival plus its '
    'tolerance, extended by the arrival gaps of its partition. Most series have no gap behind '
    'their last arrival; then no table is read.';

create table tocsin.lane_worker (
    holder text primary key,
    seen_until timestamptz not null,
    since timestamptz not null,
    problem text,
    remedy text
) with (fillfactor = 50);
comment on table tocsin.lane_worker is
    'Workers that are alive, so that each takes a fair share of the partitions. Written by each '
    'worker.';
comment on column tocsin.lane_worker.seen_until is 'The worker counts as alive until then.';
comment on column tocsin.lane_worker.since is 'Start of the worker.';
comment on column tocsin.lane_worker.problem is
    'Why the worker cannot work; it then takes no partition. Shown by `tocsin doctor`.';
comment on column tocsin.lane_worker.remedy is 'What an operator can do about the problem.';

create table tocsin.ingest_event (
    key text primary key check (length(key) between 1 and 256),
    event_id uuid not null,
    at timestamptz not null
);
-- Retention reads the oldest keys first.
create index ingest_event_at on tocsin.ingest_event (at, key);
comment on table tocsin.ingest_event is
    'Keys of the events that producers sent and a worker appended: the same key again is the '
    'same event and is ignored.';
