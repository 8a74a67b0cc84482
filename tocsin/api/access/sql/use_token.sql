-- The principal of a token, found by the unique index on its digest; no row if it is not valid.
select id, name, grants, expires_at from tocsin.use_token(%(digest)s)
