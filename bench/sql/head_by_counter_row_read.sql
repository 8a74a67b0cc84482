-- What the snapshot's holder reads.
select seq from public.bench_counter
