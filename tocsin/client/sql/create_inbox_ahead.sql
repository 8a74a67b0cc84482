-- Records handled beyond `tocsin_inbox.last_seq`. The primary key makes handling one twice
-- impossible.
create table if not exists tocsin_inbox_ahead (
    stream text not null,
    consumer text not null,
    seq bigint not null,
    primary key (stream, consumer, seq)
)
