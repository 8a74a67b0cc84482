-- Record a change for `tocsin audit`, with the state before and after. Time and principal are those of
-- the server; who is what the caller claims.
select tocsin.write_audit(%(who)s::text, %(via)s::text, %(verb)s::text, %(kind)s::text, %(owner)s::text,
                          %(name)s::text, %(old)s::jsonb, %(new)s::jsonb)
