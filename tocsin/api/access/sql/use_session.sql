-- The principal of a live session, found by the key of the table; no row if it is not valid.
select name, grants, expires_at from tocsin.use_session(%(digest)s)
