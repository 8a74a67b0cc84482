-- Store the first mark of a consumer. If another process was faster, its row is kept.
insert into tocsin_inbox (stream, consumer, last_seq, last_id)
values (%(stream)s, %(consumer)s, %(seq)s, %(id)s)
on conflict do nothing
