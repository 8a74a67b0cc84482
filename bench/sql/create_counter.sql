-- The table of the rejected way, for comparison.
create table public.bench_counter as select 1::bigint as seq
