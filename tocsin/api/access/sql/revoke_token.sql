-- Ends a token. False if another session ended it first.
select tocsin.revoke_token(%(id)s, %(revoked_by)s, %(via)s)
