-- Store that everything up to a sequence is handled. Locks the row of the consumer; a process that
-- lags changes nothing.
update tocsin_inbox set last_seq = %(seq)s, last_id = %(id)s
where stream = %(stream)s and consumer = %(consumer)s and last_seq < %(seq)s
