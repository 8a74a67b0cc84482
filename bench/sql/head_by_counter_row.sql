-- Assign the next seq with one row that every append updates.
update public.bench_counter set seq = seq + 1 returning seq
