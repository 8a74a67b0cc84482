-- One datapoint per series and second.
insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value, labels)
select %(begin)s::timestamptz + t * interval '1 second' + s * interval '10 microseconds', t * %(series)s::bigint + s, 0,
       'plant-' || s / %(rules)s %% 20, 'dsp.k' || s %% %(rules)s || '{core="' || s / %(rules)s || '"}',
       %(begin)s::timestamptz + t * interval '1 second', to_jsonb((s * 7 + t * 3) %% 1000 / 10.0),
       jsonb_build_object('core', (s / %(rules)s)::text)
from generate_series(0, %(seconds)s - 1) t, generate_series(0, %(series)s - 1) s
