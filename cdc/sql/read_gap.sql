-- The recorded gap that contains a seq. Index: log_gap_apart.
select from_seq, until_seq, reason, at
from tocsin.log_gap
where int8range(from_seq, until_seq, '[]') @> %(seq)s::bigint
