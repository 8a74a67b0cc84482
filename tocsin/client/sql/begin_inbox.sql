-- The first start of a consumer. Loses to a process that was quicker: the row that stands counts.
insert into tocsin_inbox (stream, consumer, last_seq, last_id)
values (%(stream)s, %(consumer)s, %(seq)s, %(id)s)
on conflict do nothing
