-- The records handled beyond the mark, in order, as one array. Index: primary key.
select coalesce(array_agg(seq order by seq), '{}')
from (select seq
      from tocsin_inbox_ahead
      where stream = %(stream)s and consumer = %(consumer)s and seq > %(after)s and seq <= %(until)s
      order by seq
      limit %(limit)s) as handled
