-- The identity of the events at some seqs. Index: the primary key.
select seq, id, recorded_at from tocsin.event where seq = any(%(seqs)s::bigint[])
