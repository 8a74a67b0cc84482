-- Delete the rows that `last_seq` covers. Runs in the transaction of raise_inbox, so a claim sees
-- both changes or neither.
delete from tocsin_inbox_ahead a
using tocsin_inbox i
where i.stream = %(stream)s and i.consumer = %(consumer)s
  and a.stream = i.stream and a.consumer = i.consumer and a.seq <= i.last_seq
