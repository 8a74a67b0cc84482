-- Take a record for this transaction. Locks its key: a second delivery waits here for the first one's end, and gets
-- no row if that committed. A row that was tidied away meanwhile is found by reading the inbox in a new statement.
insert into tocsin_inbox_ahead (stream, consumer, seq)
values (%(stream)s, %(consumer)s, %(seq)s)
on conflict do nothing
returning seq
