-- The handling of a message has ended. Removes its row, unless another process handles it by now.
delete from tocsin.message_attempt
where consumer = %(consumer)s and seq = %(seq)s and process = %(process)s
