-- Those of some seqs that are in a recorded gap of the log. Index: log_gap_apart.
select lost.seq
from unnest(%(seqs)s::bigint[]) as lost (seq)
where exists (select from tocsin.log_gap g where int8range(g.from_seq, g.until_seq, '[]') @> lost.seq)
