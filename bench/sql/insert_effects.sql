-- One row for each record of a batch, as the handler of a service writes it.
insert into effect (seq, id, at, note)
select * from unnest(%(seqs)s::bigint[], %(ids)s::uuid[], %(times)s::timestamptz[], %(notes)s::text[])
