-- Phase 2: pending alarms that never were.
delete from tocsin.alarm where id = any (%(ids)s::uuid[]) and state = 'pending'
