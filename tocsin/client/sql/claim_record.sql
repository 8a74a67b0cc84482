-- Claim a record for this transaction. Locks its key: a second delivery waits here until the first
-- one ends, and gets no row if that one committed. A row that tidy_inbox deleted meanwhile is found
-- by reading the inbox in a new statement.
insert into tocsin_inbox_ahead (stream, consumer, seq)
values (%(stream)s, %(consumer)s, %(seq)s)
on conflict do nothing
returning seq
