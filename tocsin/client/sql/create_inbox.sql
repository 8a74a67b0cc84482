-- The inbox of a service: up to where each of its consumers has handled the stream, and the record
-- there. With batches also the record that was last handled alone, and how often.
create table if not exists tocsin_inbox (
    stream text not null,
    consumer text not null,
    last_seq bigint not null,
    last_id uuid,
    attempted_seq bigint,
    attempts integer not null default 0,
    primary key (stream, consumer)
)
