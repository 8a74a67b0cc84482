-- Pending alarms whose condition ended before its `for`: they never were.
delete from tocsin.alarm where id = any(%(ids)s) and state = 'pending'
