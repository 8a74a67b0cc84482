-- The inbox of a service: up to where each of its consumers has handled the stream, and the record
-- there.
create table if not exists tocsin_inbox (
    stream text not null,
    consumer text not null,
    last_seq bigint not null,
    last_id uuid,
    primary key (stream, consumer)
)
