-- Insert series that have stopped, with watchdogs that are due.
with n as (select %(owner)s || '-' || g as owner from generate_series(1, %(count)s::integer) g),
series as (
    insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at)
    select owner, 'dsp.load', 0, '7', %(at)s::timestamptz, %(at)s::timestamptz - interval '10 s', 1, %(at)s::timestamptz
    from n
)
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select 'watchdog', tocsin.token(owner), 'dsp.load', %(at)s::timestamptz, %(at)s::timestamptz,
       jsonb_build_object('owner', owner, 'within_us', 10000000)
from n
