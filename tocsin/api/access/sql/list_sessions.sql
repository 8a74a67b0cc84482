-- The live sessions, the newest first. Locks nothing.
select id, name, grants, source, created_at, expires_at, last_used_at from tocsin.list_sessions(%(most)s)
