-- Move the mark from `before` to `seq`. Locks the row of the consumer. Returns no row and changes
-- nothing if another process has moved the mark, or if the table no longer has the `handled` rows in
-- between: the database failed over to a standby without them.
update tocsin_inbox set last_seq = %(seq)s, last_id = %(id)s
where stream = %(stream)s and consumer = %(consumer)s and last_seq = %(before)s
  and (select count(*) from tocsin_inbox_ahead a
       where a.stream = %(stream)s and a.consumer = %(consumer)s
         and a.seq > %(before)s and a.seq <= %(seq)s) = %(handled)s
returning last_seq
