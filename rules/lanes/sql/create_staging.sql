-- The staging table of a session: emptied by every commit, invisible to other sessions. `last_seq`
-- is set in the row whose value is the newest of its series in the batch.
create temporary table if not exists staged_datapoint (
    arrived_at timestamptz not null,
    stream_seq bigint not null,
    position integer not null,
    owner text not null,
    key text not null,
    ts timestamptz not null,
    value jsonb not null,
    labels jsonb,
    first_at timestamptz,
    last_at timestamptz,
    last_seq bigint
) on commit delete rows
