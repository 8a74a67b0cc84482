-- Current values of the series: 20 owners per key.
insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at)
select 'plant-' || s / %(rules)s %% 20, 'dsp.k' || s %% %(rules)s || '{core="' || s / %(rules)s || '"}', 0,
       to_jsonb(1.0), %(begin)s, %(begin)s, 0, %(begin)s
from generate_series(0, %(series)s - 1) s
