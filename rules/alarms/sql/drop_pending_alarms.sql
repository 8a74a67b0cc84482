-- Deletes pending alarms whose condition ended before its `for`.
delete from tocsin.alarm where id = any(%(ids)s) and state = 'pending'
