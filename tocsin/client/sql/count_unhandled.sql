-- Count the records of a list that were never handled, in one snapshot of both tables. Index: both
-- primary keys.
select count(*)
from unnest(%(seqs)s::bigint[]) as asked (seq)
where not exists (select from tocsin_inbox i
                  where i.stream = %(stream)s and i.consumer = %(consumer)s and i.last_seq >= asked.seq)
  and not exists (select from tocsin_inbox_ahead a
                  where a.stream = %(stream)s and a.consumer = %(consumer)s and a.seq = asked.seq)
