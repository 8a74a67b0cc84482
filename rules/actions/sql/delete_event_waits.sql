-- Delete event waits of one run: of the given steps, or all of them. Index: action_wait's key.
delete from tocsin.action_wait w
where w.action_id = %(id)s and (%(steps)s::integer[] is null or w.step = any(%(steps)s::integer[]))
