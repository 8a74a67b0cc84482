-- Uses a login link; returns the name of its principal. Null if another request used it first.
select tocsin.begin_session(%(login)s, %(session)s, %(expires_at)s)
