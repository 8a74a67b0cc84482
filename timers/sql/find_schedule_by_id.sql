-- The key of a schedule by its id. Locks nothing. Index: schedule's key.
select owner, name from tocsin.schedule where id = %(id)s
