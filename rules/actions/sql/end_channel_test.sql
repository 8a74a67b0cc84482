-- Write the outcome of a test.
update tocsin.channel_test set state = %(state)s, result = %(text)s where id = %(id)s
