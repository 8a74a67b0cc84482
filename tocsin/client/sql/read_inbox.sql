-- Up to where a consumer has handled the stream; no row before its first start. Index: primary key.
select last_seq, last_id from tocsin_inbox where stream = %(stream)s and consumer = %(consumer)s
