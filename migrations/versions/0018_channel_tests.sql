-- Tests of channels: asked for by an operator, performed by a worker.

create table tocsin.channel_test (
    id uuid primary key,
    channel text not null,
    transition text not null,
    requested_by text not null,
    requested_at timestamptz not null default tocsin.instant(),
    worker text,
    taken_at timestamptz,
    state text check (state in ('delivered', 'retryable', 'permanent')),
    result text
);
create index channel_test_new on tocsin.channel_test (requested_at) where taken_at is null;
create index channel_test_requested on tocsin.channel_test (requested_at);
comment on table tocsin.channel_test is
    'Tests of channels. The command line inserts a row and waits for its result. A worker sends the '
    'message, with its own secrets and its own network: those of the operator are not involved. '
    'Rows older than a day are removed by the next test.';
comment on column tocsin.channel_test.transition is 'The occasion that the message is about, such as opened.';
comment on column tocsin.channel_test.state is 'Outcome of the delivery, null until it has ended.';
