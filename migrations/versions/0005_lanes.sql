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
    'fires.';
comment on column tocsin.lane_partition.holder is
    'Worker that reads the partition; null if none does.';
comment on column tocsin.lane_partition.held_until is
    'End of the lease of the holder. Then another worker may take the partition.';
comment on column tocsin.lane_partition.incarnation is
    'When the stream was created. The sequences of a recreated stream are not comparable.';
comment on column tocsin.lane_partition.last_source_seq is
    'Last record seq among the messages that the data stream sources from the record stream. '
    'After a stream is rebuilt they arrive again, and the worker skips them.';

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
