-- Messages that may have ended a process: a message is set aside after processes have died over it.

create table tocsin.message_attempt (
    consumer text not null check (length(consumer) between 1 and 100),
    seq bigint not null,
    process text not null,
    is_shared boolean not null default false,
    deaths integer not null default 0,
    began_at timestamptz not null,
    primary key (consumer, seq)
) with (fillfactor = 50);
create index message_attempt_process on tocsin.message_attempt (process);
create index message_attempt_began on tocsin.message_attempt (began_at);
comment on table tocsin.message_attempt is
    'Messages that a worker is handling again after their handling was interrupted. The worker removes the '
    'row when the handling ends, in whatever way, so a row of a process that is gone means that the process '
    'died over the message.';
comment on column tocsin.message_attempt.consumer is
    'Consumer of a stream (actions, events, reports), or partition of a lane (data/3).';
comment on column tocsin.message_attempt.seq is 'Sequence of the message in its stream.';
comment on column tocsin.message_attempt.process is 'Process that handles the message.';
comment on column tocsin.message_attempt.is_shared is
    'Whether the process handled another message that is listed here at the same time.';
comment on column tocsin.message_attempt.deaths is
    'Processes that died while they handled this message, and no other one that is listed here.';
