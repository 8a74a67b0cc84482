-- Everything up to a sequence is handled. Locks the consumer's row; a process that is behind changes nothing.
update tocsin_inbox set last_seq = %(seq)s, last_id = %(id)s
where stream = %(stream)s and consumer = %(consumer)s and last_seq < %(seq)s
