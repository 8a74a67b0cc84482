-- Stores a new token and its audit row; returns its id. TS002 if a live token has the name.
select tocsin.add_token(%(name)s, %(digest)s, %(hint)s, %(grants)s, %(expires_at)s, %(created_by)s, %(via)s)
